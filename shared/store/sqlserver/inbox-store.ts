import { inboxStore } from '../inbox/store.ts';
import type { InboxStore } from '../inbox-store.ts';
import { digestOf } from './digest.ts';
import { claiming } from './inbox/claim.ts';
import type { InboxDatabase } from './inbox/database.ts';
import { ingestRows } from './inbox/ingest.ts';
import { retried } from './inbox/retry.ts';
import { fail, giveBack, mark } from './inbox/settle.ts';
import { type Names, type SqlServerTables, sqlServerNames } from './names.ts';
import { noteClaim } from './sql/inbox-claim.ts';
import { secondsToNextDue } from './sql/inbox-due.ts';
import { receive } from './sql/inbox-ingest.ts';
import { seedIdentity } from './sql/seed-identity.ts';

export type { InboxDatabase } from './inbox/database.ts';

/** The inbox on SQL Server. */
export function sqlServerInboxStore<Tx>(
  database: InboxDatabase<Tx>,
  tables: SqlServerTables | Names = {},
): InboxStore<Tx> {
  const names = 'placeholders' in tables ? tables : sqlServerNames(tables);

  return inboxStore<Tx>({
    seedIndex: {
      table: names.inbox,
      columns: '(Source, ExternalMessageId)',
      find: async () => (await database.query(seedIdentity, [names.inbox])).rows[0]?.['name'],
    },

    ingest: (rows) => ingestRows(database, names, rows),

    noteClaim({ consumer, messageType }) {
      const values = [digestOf(consumer, messageType), consumer, messageType];
      return retried(() => database.query(noteClaim(names), values));
    },

    claiming: (request) => claiming(database, names, request),

    begin: (limits) => database.begin(limits),

    markProcessed: (transaction, message) => mark(names, transaction, message),

    markFailed: (failures, { onFailedKey }) => fail(database, names, failures, onFailedKey),

    release: (messages) => giveBack(database, names, messages),

    async receive({ executor }, { consumer, source, externalMessageId }) {
      const digest = digestOf(consumer, source, externalMessageId);
      return (await executor.query(receive(names), [digest])).rows[0]?.['first'] === 1;
    },

    async secondsToNextDue({ consumer, messageType }) {
      const { rows } = await database.query(secondsToNextDue(names), [digestOf(consumer, messageType)]);
      return rows[0]?.['seconds'];
    },
  });
}
