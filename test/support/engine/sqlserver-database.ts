import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type SqlServerClient } from '../../../shared/store/sqlserver/connections.ts';

/** A server where databases may be created: `sqlserver://sa:password@host:1433/master?encrypt=false`. */
export const serverUrl = process.env['RELAYBOX_SQLSERVER_URL'];

/** An empty database on the server that is named. */
export interface CreatedDatabase {
  readonly url: string;
  /** Drops it; whoever is still connected is disconnected where the server can do that. */
  drop(): Promise<void>;
}

/** Creates a database, with READ_COMMITTED_SNAPSHOT as asked where the server has that setting. */
export async function createSqlServerDatabase(
  server: string,
  snapshot: 'ON' | 'OFF',
): Promise<CreatedDatabase> {
  const name = `relaybox_${randomUUID().replaceAll('-', '')}`;
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

/** `CREATE DATABASE` and its like take no parameters and stand alone. */
async function asAdmin<Result>(
  server: string,
  work: (client: SqlServerClient) => Promise<Result>,
): Promise<Result> {
  const admin = connect({ url: server }, { max: 1 });
  try {
    const client = await admin.connect();
    try {
      return await work(client);
    } finally {
      await client.release();
    }
  } finally {
    await admin.end();
  }
}
