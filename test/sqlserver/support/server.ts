import { afterAll, beforeAll, describe } from 'vitest';
import { connect, type SqlServerDatabase } from '../../../shared/store/sqlserver/connections.ts';
import { migrate } from '../../../shared/store/sqlserver/migrate.ts';
import { type Names, sqlServerNames } from '../../../shared/store/sqlserver/names.ts';
import { createSqlServerDatabase, serverUrl } from '../../support/engine/sqlserver-database.ts';

/** A database of one suite's own, with Relaybox's tables in it. */
export interface SqlServerFixture {
  readonly url: string;
  readonly database: SqlServerDatabase;
  readonly names: Names;
  /** Rows of a query, for looking at the tables. */
  rows(text: string, values?: unknown[]): Promise<readonly Record<string, unknown>[]>;
}

/** A suite of SQL Server's own. With READ_COMMITTED_SNAPSHOT on and off, each in a database of its own. */
export function onSqlServer(name: string, suite: (fixture: () => SqlServerFixture) => void): void {
  for (const snapshot of ['OFF', 'ON'] as const) {
    describe(`${name}, on SQL Server with READ_COMMITTED_SNAPSHOT ${snapshot}`, () => {
      let fixture: Awaited<ReturnType<typeof createFixture>> | undefined;
      beforeAll(async () => {
        fixture = await createFixture(serverUrl ?? '', snapshot);
      });
      afterAll(() => fixture?.drop());
      suite(() => {
        if (fixture === undefined) throw new Error('the suite has not begun');
        return fixture;
      });
    });
  }
}

/** Creates a database and migrates it. */
async function createFixture(
  server: string,
  snapshot: 'ON' | 'OFF',
): Promise<SqlServerFixture & { drop(): Promise<void> }> {
  const created = await createSqlServerDatabase(server, snapshot);
  const database = connect({ url: created.url }, { max: 16 });
  const names = sqlServerNames();
  await migrate(database, names);
  return {
    url: created.url,
    database,
    names,
    rows: async (text, values = []) => (await database.query(text, values)).rows,
    async drop() {
      await database.end();
      await created.drop();
    },
  };
}
