import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { startPostgres } from '../../local/postgres.ts';

/** A run's own server. */
export interface BenchServer {
  /** Makes an empty database and answers its URL. */
  database(): Promise<string>;
  stop(): Promise<void>;
}

/** Beyond PostgreSQL's defaults: memory and log as for a small production server, so that checkpoints don't fall into a drain. */
export const serverSettings: readonly string[] = [
  'shared_buffers=512MB',
  'max_wal_size=4GB',
  'checkpoint_timeout=30min',
];

/** Starts a server that writes every commit to disk before it answers. */
export async function startBenchServer(): Promise<BenchServer> {
  const server = await startPostgres({ durable: true, settings: serverSettings });
  return {
    async database() {
      const name = `bench_${randomUUID().replaceAll('-', '')}`;
      const admin = new pg.Client({ connectionString: server.url });
      await admin.connect();
      await admin.query(`CREATE DATABASE ${name}`);
      await admin.end();
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      return url.href;
    },
    stop: () => server.stop(),
  };
}
