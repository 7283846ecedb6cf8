/**
 * Keeps the PostgreSQL server in a process group of its own: a Ctrl-C in the terminal reaches only the local run,
 * which then stops the functions before their database. If the local run dies, however suddenly, the channel to it
 * closes, and the server and its folder go too.
 */
import { UsageError } from './errors.ts';
import { startPostgres } from './postgres.ts';

/** What the keeper tells the local run. */
export type KeeperMessage = { readonly url: string } | KeeperError;

interface KeeperError {
  readonly error: string;
  /** Whether the error says itself what to do. */
  readonly advised: boolean;
}

const say = (message: KeeperMessage, then?: () => void): void => {
  if (process.connected) process.send?.(message, undefined, undefined, () => then?.());
};

const end = (error: unknown): void => {
  const text = error instanceof Error ? `${error.message}${causeOf(error)}` : String(error);
  say({ error: text, advised: error instanceof UsageError }, () => process.exit(1));
};

// A program that can't be started at all is told to nobody else: the package doesn't listen for that.
process.on('uncaughtException', end);

// Once more where it fails: somebody may have taken the port between choosing it and listening.
const server = startPostgres().catch(() => startPostgres());

process.on('disconnect', () => {
  void server
    .then((started) => started.stop())
    .catch(() => undefined)
    .then(() => process.exit(0));
});

server.then(({ url }) => say({ url }), end);

function causeOf(error: Error): string {
  return error.cause instanceof Error ? ` (${error.cause.message})` : '';
}
