import { connect, type SqlServerDatabase } from '../../../shared/store/sqlserver/connections.ts';
import { engine } from '../../support/engine/engine.ts';

/** A database of one file's own, with nothing in it. */
export interface EmptyDatabase {
  readonly url: string;
  readonly database: SqlServerDatabase;
  /** Rows of a query. */
  rows(text: string, values?: unknown[]): Promise<readonly Record<string, unknown>[]>;
  /** Batches on one connection, one after the other. */
  batches(...texts: readonly string[]): Promise<void>;
  drop(): Promise<void>;
}

/** Creates it. To be called in a hook: without a server there is none to create. */
export async function createEmptyDatabase(): Promise<EmptyDatabase> {
  const created = await engine.createEmpty();
  const database = connect({ url: created.url }, { max: 4 });
  return {
    url: created.url,
    database,
    rows: async (text, values = []) => (await database.query(text, values)).rows,
    async batches(...texts) {
      const client = await database.connect();
      try {
        for (const text of texts) await client.batch(text);
      } finally {
        await client.release();
      }
    },
    async drop() {
      await database.end();
      await created.drop();
    },
  };
}
