import { ingestFor } from '../../../../shared/lambda/ingest.ts';
import { sqlServer } from '../../../../shared/lambda/sqlserver/engine.ts';
import { replacing } from '../replace.ts';
import { withoutDedup } from '../sabotage.ts';

export const handler = ingestFor({
  ...sqlServer,
  connect(settings, pool) {
    const connections = sqlServer.connect(settings, pool);
    return replacing(connections, { inbox: withoutDedup(connections.inbox) });
  },
})();
