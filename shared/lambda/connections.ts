import type { Deadline } from '../delivery/deadline.ts';
import type { Settings } from './config.ts';
import type { Engine, EngineConnections, PoolOptions } from './engine.ts';

interface Closable {
  end(): Promise<void>;
}

/** The one thing that outlives an invocation: pools, by engine, database and size. */
const open = new Map<string, Closable>();

/** The ends of the invocations that run now. */
const running = new Set<Deadline>();

/** No statement of Relaybox's own takes long; one that does is stuck. */
const QUERY_MS = 30_000;
/** Left for saying what went wrong. */
const MARGIN_MS = 500;
const LEAST_QUERY_MS = 100;

/** The process's connections to a database, made at the first call and shared by later ones. */
export function sharedConnections<Tx>(
  engine: Engine<Tx>,
  settings: Settings,
  pool: { readonly max: number },
): EngineConnections<Tx> {
  return shared(engine, settings, pool);
}

/** The same for any engine whose connections can be closed. */
export function shared<Connections extends Closable>(
  engine: { readonly name: string; connect(settings: Settings, pool: PoolOptions): Connections },
  settings: Settings,
  pool: { readonly max: number },
): Connections {
  const key = JSON.stringify([engine.name, pool.max, settings.database, settings.tables]);
  const known = open.get(key);
  // The key starts with the engine's name, and an engine's connections are all of one type.
  if (known) return known as Connections;
  const connections = engine.connect(settings, { max: pool.max, queryTimeoutMs, ...patience(settings) });
  open.set(key, connections);
  return connections;
}

/** What the settings say of how long a connection may take. */
function patience({ database }: Settings): Pick<PoolOptions, 'connectTimeoutMs'> {
  if ('url' in database || database.connectSeconds === undefined) return {};
  return { connectTimeoutMs: database.connectSeconds * 1000 };
}

/** Runs an invocation; statements meanwhile get no more time than is left of it. */
export async function untilDeadline<Result>(
  deadline: Deadline,
  work: () => Promise<Result>,
): Promise<Result> {
  running.add(deadline);
  try {
    return await work();
  } finally {
    running.delete(deadline);
  }
}

/**
 * Closes every pool of this process, so that a long-lived host or a test can end. A later invocation opens them anew.
 * On Lambda nobody needs it: the sandbox is frozen with its sockets, and they are checked when it thaws.
 */
export async function closeConnections(): Promise<void> {
  const all = [...open.values()];
  open.clear();
  await Promise.allSettled(all.map((connections) => connections.end()));
}

/** Runs once per process, and again only after it has failed: a database that was down at a cold start must not stay down. */
export function once<T>(work: () => Promise<T>): () => Promise<T> {
  let started: Promise<T> | undefined;
  return () => {
    started ??= work().catch((error: unknown) => {
      started = undefined;
      throw error;
    });
    return started;
  };
}

/** What is left of the invocation that has most left: with several at once, a pool can't tell whose statement it runs. */
function queryTimeoutMs(): number {
  if (running.size === 0) return QUERY_MS;
  const leftMs = Math.max(...[...running].map((deadline) => deadline.remainingMs()));
  return Math.min(QUERY_MS, Math.max(LEAST_QUERY_MS, leftMs - MARGIN_MS));
}
