import { ingestFor } from '../../../shared/lambda/ingest.ts';
import { postgres } from '../../../shared/lambda/postgres/engine.ts';
import { replacing } from './replace.ts';
import { withoutDedup } from './sabotage.ts';

export const handler = ingestFor({
  ...postgres,
  connect(settings, pool) {
    const connections = postgres.connect(settings, pool);
    return replacing(connections, { inbox: withoutDedup(connections.inbox) });
  },
})();
