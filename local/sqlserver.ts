import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { connect } from '../shared/store/sqlserver/connections.ts';
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

/** Creates a database on the server that is named; it is dropped at the end. Answers its URL. */
export async function openSqlServer(cleanup: Cleanup): Promise<string> {
  const server = sqlServerUrl();
  const name = `orders_${randomUUID().slice(0, 8)}`;
  try {
    await batches(server, [
      `CREATE DATABASE [${name}]`,
      `ALTER DATABASE [${name}] SET READ_COMMITTED_SNAPSHOT ON`,
    ]);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${serverVariable} names a server where no database can be created: ${reason}`, {
      cause: error,
    });
  }
  cleanup.defer(() =>
    batches(server, [
      `ALTER DATABASE [${name}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE`,
      `DROP DATABASE [${name}]`,
    ]),
  );
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** Creates the example application's own tables. */
export async function createOrderTablesOnSqlServer(databaseUrl: string): Promise<void> {
  const sql = await readFile(new URL('../examples/orders/sqlserver/tables.sql', import.meta.url), 'utf8');
  await batches(databaseUrl, [sql]);
}

async function batches(url: string, texts: readonly string[]): Promise<void> {
  const database = connect({ url }, { max: 1 });
  const client = await database.connect();
  try {
    for (const text of texts) await client.batch(text);
  } finally {
    await client.release();
    await database.end();
  }
}
