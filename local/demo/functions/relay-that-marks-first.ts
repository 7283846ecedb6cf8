import { postgres } from '../../../shared/lambda/postgres/engine.ts';
import { relayFor } from '../../../shared/lambda/relay.ts';
import { replacing } from './replace.ts';
import { markingFirst } from './sabotage.ts';

export const handler = relayFor({
  ...postgres,
  connect(settings, pool) {
    const connections = postgres.connect(settings, pool);
    return replacing(connections, { outbox: markingFirst(connections.outbox) });
  },
})();
