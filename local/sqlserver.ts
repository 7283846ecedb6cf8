import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type SqlServerClient } from '../shared/store/sqlserver/connections.ts';
import type { Cleanup } from './cleanup.ts';
import { UsageError } from './errors.ts';

/** Names the server. */
export const serverVariable = 'RELAYBOX_SQLSERVER_URL';

/** The server to use; throws where none is named. */
export function sqlServerUrl(): string {
  const server = process.env[serverVariable];
  if (server) return server;
  throw new UsageError(
    `${serverVariable} is not set: no SQL Server can be embedded, so name one where databases may be created, like sqlserver://sa:password@127.0.0.1:1433/master?encrypt=false ("docker compose --profile sqlserver up -d --wait sqlserver" starts one)`,
  );
}

/** A database on a server that was named. */
export interface CreatedDatabase {
  readonly url: string;
  /** Drops it; whoever is still connected is disconnected where the server can do that. */
  drop(): Promise<void>;
}

/** Creates a database, with READ_COMMITTED_SNAPSHOT as asked where the server has that setting. */
export async function createSqlServerDatabase(
  server: string,
  name: string,
  snapshot: 'ON' | 'OFF',
): Promise<CreatedDatabase> {
  const settable = await asAdmin(server, async (admin) => {
    await admin.batch(`CREATE DATABASE [${name}]`);
    const has = await hasDatabaseSettings(admin);
    if (has) await admin.batch(`ALTER DATABASE [${name}] SET READ_COMMITTED_SNAPSHOT ${snapshot}`);
    return has;
  });
  const url = new URL(server);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: () =>
      asAdmin(server, async (admin) => {
        if (settable) await admin.batch(`ALTER DATABASE [${name}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE`);
        await dropped(admin, name);
      }),
  };
}

/** A server that speaks the protocol and isn't Microsoft's may have no such setting: its databases are as they are. */
async function hasDatabaseSettings(admin: SqlServerClient): Promise<boolean> {
  const { rows } = await admin.query('SELECT @@VERSION AS [version]');
  return String(rows[0]?.['version']).startsWith('Microsoft SQL');
}

/** Where nobody can be disconnected, a session that was just closed may be seen for a moment longer. */
async function dropped(admin: SqlServerClient, name: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await admin.batch(`DROP DATABASE [${name}]`);
      return;
    } catch (error) {
      if (attempt === 10) throw error;
      await sleep(200);
    }
  }
}

/** Creates a database on the server that is named; it is dropped at the end. Answers its URL. */
export async function openSqlServer(cleanup: Cleanup): Promise<string> {
  const name = `orders_${randomUUID().slice(0, 8)}`;
  const created = await createSqlServerDatabase(sqlServerUrl(), name, 'ON').catch((error: unknown) => {
    if (error instanceof UsageError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${serverVariable} names a server where no database can be created: ${reason}`, {
      cause: error,
    });
  });
  cleanup.defer(() => created.drop());
  return created.url;
}

/** Creates the example application's own tables. */
export async function createOrderTablesOnSqlServer(databaseUrl: string): Promise<void> {
  const sql = await readFile(new URL('../examples/orders/sqlserver/tables.sql', import.meta.url), 'utf8');
  await asAdmin(databaseUrl, (client) => client.batch(sql));
}

/** `CREATE DATABASE` and its like take no parameters and stand alone. */
async function asAdmin<Result>(
  url: string,
  work: (client: SqlServerClient) => Promise<Result>,
): Promise<Result> {
  const database = connect({ url }, { max: 1 });
  try {
    const client = await database.connect();
    try {
      return await work(client);
    } finally {
      await client.release();
    }
  } finally {
    await database.end();
  }
}
