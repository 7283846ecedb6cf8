import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe } from 'vitest';
import { connect, type SqlServerDatabase } from '../../../shared/store/sqlserver/connections.ts';
import { migrate } from '../../../shared/store/sqlserver/migrate.ts';
import { type Names, sqlServerNames } from '../../../shared/store/sqlserver/names.ts';

/** A server where databases may be created: `sqlserver://sa:password@host:1433/master?encrypt=false`. */
export const serverUrl = process.env['RELAYBOX_SQLSERVER_URL'];

/** A database of one suite's own, with Relaybox's tables in it. */
export interface SqlServerFixture {
  readonly url: string;
  readonly database: SqlServerDatabase;
  readonly names: Names;
  /** Rows of a query, for looking at the tables. */
  rows(text: string, values?: unknown[]): Promise<readonly Record<string, unknown>[]>;
}

/**
 * A suite that needs a server. Without one every test of it is reported as skipped, by name and in the count: never as
 * passed. With READ_COMMITTED_SNAPSHOT on and off, each in a database of its own.
 */
export function onSqlServer(name: string, suite: (fixture: () => SqlServerFixture) => void): void {
  for (const snapshot of ['OFF', 'ON'] as const) {
    describe.skipIf(serverUrl === undefined)(
      `${name}, on SQL Server with READ_COMMITTED_SNAPSHOT ${snapshot}`,
      () => {
        let fixture: Awaited<ReturnType<typeof createFixture>> | undefined;
        beforeAll(async () => {
          fixture = await createFixture(serverUrl ?? '', snapshot);
        });
        afterAll(() => fixture?.drop());
        suite(() => {
          if (fixture === undefined) throw new Error('the suite has not begun');
          return fixture;
        });
      },
    );
  }
}

/** Creates a database and migrates it. */
export async function createFixture(
  server: string,
  snapshot: 'ON' | 'OFF',
): Promise<SqlServerFixture & { drop(): Promise<void> }> {
  const name = `relaybox_${randomUUID().replaceAll('-', '')}`;
  await asAdmin(server, `CREATE DATABASE [${name}]`);
  await asAdmin(server, `ALTER DATABASE [${name}] SET READ_COMMITTED_SNAPSHOT ${snapshot}`);
  const at = new URL(server);
  at.pathname = `/${name}`;
  const database = connect({ url: at.href }, { max: 16 });
  const names = sqlServerNames();
  await migrate(database, names);
  return {
    url: at.href,
    database,
    names,
    rows: async (text, values = []) => (await database.query(text, values)).rows,
    async drop() {
      await database.end();
      await asAdmin(server, `ALTER DATABASE [${name}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE`);
      await asAdmin(server, `DROP DATABASE [${name}]`);
    },
  };
}

/** Runs a statement that takes no parameters, as `CREATE DATABASE` is one. */
async function asAdmin(server: string, text: string): Promise<void> {
  const admin = connect({ url: server }, { max: 1 });
  try {
    const client = await admin.connect();
    try {
      await client.batch(text);
    } finally {
      await client.release();
    }
  } finally {
    await admin.end();
  }
}
