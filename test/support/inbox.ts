import type pg from 'pg';
import type { InboxStore } from '../../shared/store/inbox-store.ts';
import { connect, type PostgresDatabase } from '../../shared/store/postgres/connections.ts';
import { postgresInboxStore } from '../../shared/store/postgres/inbox-store.ts';
import type { PostgresTables } from '../../shared/store/postgres/names.ts';
import { createMigratedDatabase, type MigratedDatabase } from './migrated.ts';

export { claimRequest, inboxRow, limits } from './inbox-rows.ts';

/** A migrated database with an inbox store over it. */
export interface InboxFixture extends MigratedDatabase {
  readonly inboxDatabase: PostgresDatabase;
  readonly store: InboxStore<pg.PoolClient>;
  /** Rows of a query, for looking at the tables. */
  rows(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
}

/** Creates a database of the file's own, with a store. */
export async function createInbox(
  settings: Record<string, string> = {},
  tables: PostgresTables = {},
): Promise<InboxFixture> {
  const migrated = await createMigratedDatabase(settings, tables);
  const inboxDatabase = connect({ url: migrated.url }, { max: 16 });
  return {
    ...migrated,
    inboxDatabase,
    store: postgresInboxStore(inboxDatabase, migrated.tables),
    drop: async () => {
      await inboxDatabase.end();
      await migrated.drop();
    },
    rows: async (text, values = []) => (await migrated.pool.query(text, values)).rows,
  };
}
