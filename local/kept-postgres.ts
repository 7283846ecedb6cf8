import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { UsageError } from './errors.ts';
import type { KeeperMessage } from './postgres-keeper.ts';

/** A PostgreSQL server that is gone with this process, whichever way this one ends. */
export interface KeptPostgres {
  /** Connection URL of the superuser, database `postgres`; rejects with advice where the server doesn't start. */
  readonly url: Promise<string>;
  /** Stops the server and removes its folder, even in the middle of its start. */
  stop(): Promise<void>;
}

/** Starts PostgreSQL under a keeper process. Answers at once, so that a start can be interrupted. */
export function keepPostgres(): KeptPostgres {
  const keeper = fork(fileURLToPath(new URL('./postgres-keeper.ts', import.meta.url)), [], {
    detached: true,
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const exited = once(keeper, 'exit');
  const first = Promise.race([
    once(keeper, 'message').then(([message]) => message as KeeperMessage),
    exited.then(
      (): KeeperMessage => ({ error: 'the server process ended before it was ready', advised: false }),
    ),
  ]);
  const url = first.then((message) => {
    if (!('error' in message)) return message.url;
    if (message.advised)
      throw new UsageError(`The embedded PostgreSQL did not start: ${message.error}\n${ownServer}`);
    throw new Error(adviceFor(message.error));
  });
  url.catch(() => undefined);
  return {
    url,
    async stop() {
      if (keeper.connected) keeper.disconnect();
      await exited;
    },
  };
}

const ownServer =
  '  - or bring a server of your own: RELAYBOX_LOCAL_POSTGRES_URL=postgres://user:password@host:5432/postgres';

/** What a person can do about a server that doesn't start. */
function adviceFor(error: string): string {
  return [
    `The embedded PostgreSQL did not start: ${error}`,
    '  - "Permission denied" or EACCES: as root, the server runs as the user "postgres". Run as another user, or make the folders above this one readable for all.',
    '  - a missing shared library: its install script did not run. Run `npm ci` without --ignore-scripts.',
    ownServer,
  ].join('\n');
}
