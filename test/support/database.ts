import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

/** A database of one test file's own. */
export interface TestDatabase {
  readonly url: string;
  readonly pool: pg.Pool;
  /** Closes the pool and drops the database, whoever is still connected. */
  drop(): Promise<void>;
}

/** Creates an empty database on the run's server. `settings` become the database's defaults, e.g. `{ timezone: 'Asia/Kolkata' }`. */
export async function createDatabase(settings: Record<string, string> = {}): Promise<TestDatabase> {
  const base = inject('postgresUrl');
  const name = `relaybox_${randomUUID().replaceAll('-', '')}`;
  await asAdmin(base, async (admin) => {
    await admin.query(`CREATE DATABASE ${name}`);
    for (const [key, value] of Object.entries(settings)) {
      await admin.query(
        `ALTER DATABASE ${name} SET ${admin.escapeIdentifier(key)} = ${admin.escapeLiteral(value)}`,
      );
    }
  });
  const url = new URL(base);
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 10 });
  pool.on('error', () => undefined);
  return {
    url: url.href,
    pool,
    async drop() {
      await pool.end();
      await asAdmin(base, (admin) => admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    },
  };
}

async function asAdmin(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
