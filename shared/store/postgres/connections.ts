import pg from 'pg';
import { DatabaseUnavailable, RelayboxError } from '../../message/errors.ts';
import { type Login, type Logins, loginsOf, openWith } from '../credentials.ts';
import type { Transaction, TransactionLimits } from '../inbox-store.ts';
import { trustedRoots } from '../tls.ts';
import { loginRefused, refusedByServer } from './connection-errors.ts';
import { type PostgresHost, type PostgresSettings, resolveSettings } from './connection-settings.ts';
import type { Database, DatabaseResult } from './database.ts';
import { ensureReadCommitted } from './isolation.ts';
import { ConnectionPool, cut, type Lease, type PoolLimits } from './pool.ts';
import { STALE_STATEMENT, Statements } from './prepared.ts';
import { beginTransaction } from './transaction.ts';

/** How connections behave. All have defaults that fit a function. */
export interface ConnectOptions {
  /** Connections at most. @default 2 */
  readonly max?: number;
  /** @default 5000; with Aurora's auto-pause 40000, or the first attempt fails */
  readonly connectTimeoutMs?: number;
  /** A statement that takes longer is given up, and its connection closed. A function is asked for each statement. @default 30000 */
  readonly queryTimeoutMs?: number | (() => number);
  /** A connection that nobody used for so long is closed instead of used, by the wall clock. @default 60000 */
  readonly idleMs?: number;
  /** One idle for longer is asked for a sign of life first, before a statement that must not be sent twice. @default 5000 */
  readonly trustedMs?: number;
  /** @default 1800000, half an hour */
  readonly maxAgeMs?: number;
  /** A root certificate of one's own, PEM, instead of RDS's. */
  readonly ca?: string;
  /** What the server's activity view calls these connections; not sent behind a proxy. @default 'relaybox' */
  readonly applicationName?: string;
  /** Logins other than the settings', e.g. in a test. */
  readonly logins?: Logins;
}

/** A PostgreSQL database with a small pool of connections. Nothing is opened before the first use. */
export interface PostgresDatabase extends Database {
  /**
   * One statement on autocommit. Where its answer got lost it may have had its effect all the same, and it is not
   * tried again; it is, once, where the connection turned out to be dead before it was sent.
   */
  query(text: string, values?: unknown[]): Promise<DatabaseResult>;
  /** A connection of one's own while `work` runs. It is closed where `work` leaves a transaction open or throws. */
  withClient<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result>;
  /** A connection of one's own until its `release`. */
  connect(): Promise<pg.PoolClient>;
  /** Begins a transaction on READ COMMITTED, with its limits set on the server. */
  begin(limits: TransactionLimits): Promise<Transaction<pg.PoolClient>>;
  /** Closes idle connections now, and those in use when they come back. */
  end(): Promise<void>;
}

const pingMs = 2_000;

/** Connects to a database, at first use. Throws `ConfigurationError` at once where the settings can't be right. */
export function connect(settings: PostgresSettings, options: ConnectOptions = {}): PostgresDatabase {
  const host = resolveSettings(settings);
  const limits: PoolLimits = {
    max: options.max ?? 2,
    connectTimeoutMs: options.connectTimeoutMs ?? 5_000,
    idleMs: options.idleMs ?? 60_000,
    maxAgeMs: options.maxAgeMs ?? 30 * 60_000,
  };
  const logins = options.logins ?? loginsOf(host);
  const pool = new ConnectionPool(() => openClient(host, logins, limits, options), limits);
  const given = options.queryTimeoutMs ?? 30_000;
  const queryMs = typeof given === 'function' ? given : () => given;
  const statements = new Statements(!host.proxy);
  return new Connections(pool, statements, queryMs, options.trustedMs ?? 5_000);
}

class Connections implements PostgresDatabase {
  readonly #pool: ConnectionPool;
  readonly #statements: Statements;
  readonly #queryMs: () => number;
  readonly #trustedMs: number;

  constructor(pool: ConnectionPool, statements: Statements, queryMs: () => number, trustedMs: number) {
    this.#pool = pool;
    this.#statements = statements;
    this.#queryMs = queryMs;
    this.#trustedMs = trustedMs;
  }

  async query(text: string, values?: unknown[]): Promise<DatabaseResult> {
    const statement = values === undefined ? text : this.#statements.of(text, values);
    return await this.#onceMore(async (lease) => {
      await this.#alive(lease);
      const result = await within(this.#queryMs(), () => lease.client.query(statement));
      lease.client.release();
      return result;
    });
  }

  async withClient<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    const client = await this.connect();
    try {
      const result = await work(client);
      client.release();
      return result;
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  async connect(): Promise<pg.PoolClient> {
    return await this.#onceMore(async (lease) => {
      await this.#alive(lease);
      return lease.client;
    });
  }

  async begin(limits: TransactionLimits): Promise<Transaction<pg.PoolClient>> {
    // BEGIN has no effect that could be there twice, so it is its own sign of life.
    return await this.#onceMore(({ client, fresh }) => {
      const ms = fresh ? this.#queryMs() : Math.min(this.#queryMs(), pingMs);
      return beginTransaction(client, limits, (work) => deadOnSilence(within(ms, work)));
    });
  }

  async end(): Promise<void> {
    await this.#pool.end();
  }

  async #alive({ client, fresh, idleMs }: Lease): Promise<void> {
    if (fresh || idleMs <= this.#trustedMs) return;
    await deadOnSilence(within(pingMs, () => client.query('SELECT 1')));
  }

  /** Takes a connection, and once more another one, where the first could not be had or proved dead before it did anything. */
  async #onceMore<Result>(work: (lease: Lease) => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      let lease: Lease | undefined;
      try {
        lease = await this.#pool.take();
        return await work(lease);
      } catch (error) {
        lease?.client.release(worthless(error));
        const nothingHappened = lease === undefined ? !(error instanceof RelayboxError) : unsent(error);
        if (attempt === 1 && nothingHappened && !loginRefused(error)) continue;
        throw explained(error);
      }
    }
  }
}

/** The connection was dead before the statement was sent. */
class DeadConnection extends Error {}

function unsent(error: unknown): boolean {
  return error instanceof DeadConnection || refusedByServer(error) || staleStatement(error);
}

async function deadOnSilence<Result>(answer: Promise<Result>): Promise<Result> {
  try {
    return await answer;
  } catch (error) {
    if (isFromServer(error) && !refusedByServer(error)) throw error;
    throw new DeadConnection('the connection had died', { cause: error });
  }
}

/** Waits for an answer only so long. Whoever gets the error closes the connection, since the statement may still be running on it. */
async function within<Result>(ms: number, work: () => Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => {
        reject(new DatabaseUnavailable(`the database did not answer within ${Math.round(ms)} ms`));
      },
      Math.max(1, ms),
    );
  });
  try {
    return await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** An error of the statement leaves the connection as it was. */
function worthless(error: unknown): boolean {
  return !isFromServer(error) || refusedByServer(error) || staleStatement(error);
}

function staleStatement(error: unknown): boolean {
  return error instanceof pg.DatabaseError && STALE_STATEMENT.has(error.code ?? '');
}

function isFromServer(error: unknown): boolean {
  return error instanceof pg.DatabaseError;
}

/** A socket's own error says little; the server's is passed on as it is, with its code. */
function explained(error: unknown): unknown {
  if (error instanceof RelayboxError || isFromServer(error)) return error;
  const cause = error instanceof DeadConnection ? error.cause : error;
  const reason = cause instanceof Error ? cause.message || (cause as { code?: string }).code : String(cause);
  return new DatabaseUnavailable(`the connection to the database failed: ${reason}`, { cause });
}

async function openClient(
  host: PostgresHost & { readonly tls: boolean },
  logins: Logins,
  limits: PoolLimits,
  options: ConnectOptions,
): Promise<pg.Client> {
  return await openWith(logins, loginRefused, async (login) => {
    const client = new pg.Client(await clientConfig(host, login, limits, options));
    // It reports a failure to connect twice.
    client.on('error', () => undefined);
    try {
      await within(limits.connectTimeoutMs, async () => {
        await client.connect();
        if (!host.proxy) await ensureReadCommitted(client);
      });
      return client;
    } catch (error) {
      cut(client);
      throw error;
    }
  });
}

async function clientConfig(
  host: PostgresHost & { readonly tls: boolean },
  login: Login,
  limits: PoolLimits,
  options: ConnectOptions,
): Promise<pg.ClientConfig> {
  return {
    host: host.host,
    port: host.port ?? 5432,
    database: host.database,
    user: login.user,
    password: login.password,
    // Never by the URL: a parameter there would replace this object. Name and chain are checked by default.
    ssl: host.tls ? { secureContext: await trustedRoots(options.ca) } : false,
    keepAlive: true,
    connectionTimeoutMillis: limits.connectTimeoutMs,
    ...(host.proxy ? {} : { application_name: options.applicationName ?? 'relaybox' }),
  };
}
