import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { LocalPostgres } from './postgres.ts';
import type { KeeperMessage } from './postgres-keeper.ts';

/** Starts PostgreSQL under a keeper process, so that it is gone with this process, whichever way this one ends. */
export async function startKeptPostgres(): Promise<LocalPostgres> {
  const keeper = fork(fileURLToPath(new URL('./postgres-keeper.ts', import.meta.url)), [], {
    detached: true,
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const exited = once(keeper, 'exit');
  const first = await Promise.race([
    once(keeper, 'message').then(([message]) => message as KeeperMessage),
    exited.then((): KeeperMessage => ({ error: 'the server process ended before it was ready' })),
  ]);
  if ('error' in first) {
    await exited;
    throw new Error(adviceFor(first.error));
  }
  return {
    url: first.url,
    async stop() {
      if (keeper.connected) keeper.disconnect();
      await exited;
    },
  };
}

/** What a person can do about a server that doesn't start. */
function adviceFor(error: string): string {
  const advice = [
    `The embedded PostgreSQL did not start: ${error}`,
    '  - "Permission denied" or EACCES: the server runs as the user "postgres" when you are root. Run as another user, or make the folders above this one readable for all.',
    '  - a missing shared library: its install script did not run. Run `npm ci` without --ignore-scripts.',
    '  - or bring a server of your own: RELAYBOX_LOCAL_POSTGRES_URL=postgres://user:password@host:5432/postgres',
  ];
  return advice.join('\n');
}
