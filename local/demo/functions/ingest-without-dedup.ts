import { randomUUID } from 'node:crypto';
import { ingestFor } from '../../../shared/lambda/ingest.ts';
import { postgres } from '../../../shared/lambda/postgres/engine.ts';
import type { InboxStore } from '../../../shared/store/inbox-store.ts';
import { replacing } from './replace.ts';

/** Sabotage: every delivery gets an identity of its own, so that no duplicate is recognised. The demo must notice. */
function withoutDedup<Tx>(store: InboxStore<Tx>): InboxStore<Tx> {
  return replacing(store, {
    ingest: (rows) => store.ingest(rows.map((row) => ({ ...row, externalMessageId: randomUUID() }))),
  });
}

export const handler = ingestFor({
  ...postgres,
  connect(settings, pool) {
    const connections = postgres.connect(settings, pool);
    return replacing(connections, { inbox: withoutDedup(connections.inbox) });
  },
})();
