import pg from 'pg';
import { startPostgres } from '../../local/postgres.ts';

/** The PostgreSQL outside the emulator that the deployed functions work on. */
export interface CloudDatabase {
  readonly pool: pg.Pool;
  /** As the functions reach it. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password: string;
  stop(): Promise<void>;
}

/**
 * A database of this run's own: on a server of ours, or on the one at the given URL.
 * Functions in containers reach that server by another name than we do: `hostForFunctions`.
 */
export async function startDatabase(
  url: string | undefined,
  hostForFunctions: string | undefined,
): Promise<CloudDatabase> {
  const own = url === undefined ? await startPostgres({ durable: false }) : undefined;
  const server = new URL(url ?? own?.url ?? '');
  const database = `relaybox_cloud_${process.pid}`;
  const admin = new pg.Client({ connectionString: server.href });
  await admin.connect();
  await admin.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
  await admin.query(`CREATE DATABASE ${database}`);
  const at = new URL(server);
  at.pathname = `/${database}`;
  const pool = new pg.Pool({ connectionString: at.href, max: 2 });
  // The server's end ends idle connections too.
  pool.on('error', () => {});
  return {
    pool,
    host: hostForFunctions ?? server.hostname,
    port: Number(server.port || 5432),
    database,
    user: decodeURIComponent(server.username),
    password: decodeURIComponent(server.password),
    async stop() {
      await pool.end();
      await admin.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
      await admin.end();
      await own?.stop();
    },
  };
}
