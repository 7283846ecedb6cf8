import { relayFor } from '../../../../shared/lambda/relay.ts';
import { sqlServer } from '../../../../shared/lambda/sqlserver/engine.ts';
import { replacing } from '../replace.ts';
import { markingFirst } from '../sabotage.ts';

export const handler = relayFor({
  ...sqlServer,
  connect(settings, pool) {
    const connections = sqlServer.connect(settings, pool);
    return replacing(connections, { outbox: markingFirst(connections.outbox) });
  },
})();
