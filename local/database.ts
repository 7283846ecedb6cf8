import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import type { Cleanup } from './cleanup.ts';
import { keepPostgres } from './kept-postgres.ts';

/** Names a server to use instead of the embedded one. A database is created there, and dropped at the end. */
const serverVariable = 'RELAYBOX_LOCAL_POSTGRES_URL';

/** Database engines that the local run can use. There is no SQL Server to embed, so one has to be named. */
export type EngineName = 'postgres' | 'sqlserver';

/** Makes an empty database, on a server of our own where none is given; answers its URL. */
export async function openDatabase(cleanup: Cleanup, engine: EngineName = 'postgres'): Promise<string> {
  if (engine === 'sqlserver') {
    const { openSqlServer } = await import('./sqlserver.ts');
    return await openSqlServer(cleanup);
  }
  const given = process.env[serverVariable];
  if (given) return await createDatabase(given, cleanup);
  const server = keepPostgres();
  cleanup.defer(() => server.stop());
  return await createDatabase(await server.url, cleanup, { dropped: false });
}

async function createDatabase(server: string, cleanup: Cleanup, { dropped = true } = {}): Promise<string> {
  // A server that goes away with its database needs no suffix; one that stays may have several.
  const name = dropped ? `orders_${randomUUID().slice(0, 8)}` : 'orders';
  try {
    await withClient(server, (client) => client.query(`CREATE DATABASE ${name}`));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${serverVariable} names a server where no database can be created: ${reason}`, {
      cause: error,
    });
  }
  if (dropped) {
    cleanup.defer(() =>
      withClient(server, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)),
    );
  }
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** Creates the example application's own tables. */
export async function createOrderTables(databaseUrl: string, engine: EngineName = 'postgres'): Promise<void> {
  if (engine === 'sqlserver') {
    const { createOrderTablesOnSqlServer } = await import('./sqlserver.ts');
    return await createOrderTablesOnSqlServer(databaseUrl);
  }
  const sql = await readFile(new URL('../examples/orders/tables.sql', import.meta.url), 'utf8');
  await withClient(databaseUrl, (client) => client.query(sql));
}

async function withClient(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
