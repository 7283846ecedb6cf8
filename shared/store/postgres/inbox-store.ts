import { createHash } from 'node:crypto';
import type pg from 'pg';
import { inboxStore } from '../inbox/store.ts';
import type { InboxStore } from '../inbox-store.ts';
import { seedIdentity } from './check.ts';
import { claiming } from './inbox/claim.ts';
import type { InboxDatabase } from './inbox/database.ts';
import { ingestRows } from './inbox/ingest.ts';
import { fail, giveBack, mark } from './inbox/settle.ts';
import { type Names, type PostgresTables, postgresNames } from './names.ts';
import { noteClaim } from './sql/inbox-claim.ts';
import { secondsToNextDue } from './sql/inbox-due.ts';
import { receive } from './sql/inbox-ingest.ts';

export type { InboxDatabase } from './inbox/database.ts';

const seedIdentitySql = `
SELECT i.indexrelid::regclass::text AS name FROM pg_index AS i WHERE i.indrelid = to_regclass($1) AND ${seedIdentity}`;

/** The inbox on PostgreSQL. */
export function postgresInboxStore(
  database: InboxDatabase,
  tables: PostgresTables | Names = {},
): InboxStore<pg.PoolClient> {
  const names = 'placeholders' in tables ? tables : postgresNames(tables);
  const idleOf = new WeakMap<object, number>();

  return inboxStore<pg.PoolClient>({
    seedIndex: {
      table: names.inbox,
      columns: '(source, external_message_id)',
      find: async () => (await database.query(seedIdentitySql, [names.inbox])).rows[0]?.['name'],
    },

    ingest: (rows) => ingestRows(database, names, rows),

    noteClaim: ({ consumer, messageType }) => database.query(noteClaim(names), [consumer, messageType]),

    claiming: (request) => claiming(database, names, request),

    async begin(limits) {
      const transaction = await database.begin(limits);
      idleOf.set(transaction, limits.idleMs);
      return transaction;
    },

    async markProcessed(transaction, message) {
      return await mark(names, transaction, message, idleOf.get(transaction) ?? Number.MAX_SAFE_INTEGER);
    },

    markFailed: (failures, { onFailedKey }) => fail(database, names, failures, onFailedKey),

    release: (messages) => giveBack(database, names, messages),

    async receive({ executor }, { consumer, source, externalMessageId }) {
      const digest = digestOf([consumer, source, externalMessageId]);
      return (await executor.query(receive(names), [digest])).rows.length > 0;
    },

    async secondsToNextDue({ consumer, messageType }) {
      const { rows } = await database.query(secondsToNextDue(names), [consumer, messageType]);
      return rows[0]?.['seconds'];
    },
  });
}

/** A receipt's digest. Each part counts with its length, so that no two receipts have the same bytes before them. */
function digestOf(parts: readonly string[]): Buffer {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:${part}`);
  return hash.digest();
}
