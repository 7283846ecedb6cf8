import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'mssql';
import { DatabaseUnavailable, RelayboxError } from '../../message/errors.ts';
import { type Logins, loginsOf } from '../credentials.ts';
import type { Transaction, TransactionLimits } from '../inbox-store.ts';
import { trustedCertificates } from '../tls.ts';
import { connectionLost, deadlock, loginRefused, refusedByServer } from './connection-errors.ts';
import { resolveSettings, type SqlServerHost, type SqlServerSettings } from './connection-settings.ts';
import type { Database, DatabaseResult } from './database.ts';
import { runRequest } from './executor.ts';
import { LivingPool, type PoolLimits } from './pool.ts';
import { beginTransaction, type SqlServerTransaction } from './transaction.ts';

/** How connections behave. All have defaults that fit a function. */
export interface ConnectOptions {
  /** Connections at most. @default 2 */
  readonly max?: number;
  /** @default 5000 */
  readonly connectTimeoutMs?: number;
  /** A statement that takes longer is given up, and its connection closed. A function is asked for each statement. @default 30000 */
  readonly queryTimeoutMs?: number | (() => number);
  /** A connection that nobody used for so long is closed instead of used, by the wall clock. @default 60000 */
  readonly idleMs?: number;
  /** One idle for longer is asked for a sign of life first. @default 5000 */
  readonly trustedMs?: number;
  /** @default 1800000, half an hour */
  readonly maxAgeMs?: number;
  /** A root certificate of one's own, PEM, instead of RDS's. */
  readonly ca?: string;
  /** What the server's activity view calls these connections. @default 'relaybox' */
  readonly applicationName?: string;
  /** Logins other than the settings', e.g. in a test. */
  readonly logins?: Logins;
}

/** A SQL Server database with a small pool of connections. Nothing is opened before the first use. */
export interface SqlServerDatabase extends Database {
  /**
   * One batch on autocommit, run again where it was the victim of a deadlock (its transaction was rolled back): so a
   * batch is one transaction, or safe to run twice. Where its answer got lost it may have had its effect all the same,
   * and it is not tried again.
   */
  query(text: string, values?: unknown[]): Promise<DatabaseResult>;
  /** A connection of one's own until its `release`, for migrations. */
  connect(): Promise<SqlServerClient>;
  /** mssql's own pool, e.g. for an ORM; with Relaybox's care for its connections. */
  pool(): Promise<sql.ConnectionPool>;
  /** Begins a transaction on READ COMMITTED, with its limits. */
  begin(limits: TransactionLimits): Promise<Transaction<SqlServerTransaction>>;
  /** Closes all connections. */
  end(): Promise<void>;
}

/** A connection of one's own. */
export interface SqlServerClient extends Database {
  /** Runs a batch as it is, without values and without a limit of time. */
  batch(text: string): Promise<void>;
  /** Closes it. */
  release(): Promise<void>;
}

const attempts = 4;

/** Connects to a database, at first use. Throws `ConfigurationError` at once where the settings can't be right. */
export function connect(settings: SqlServerSettings, options: ConnectOptions = {}): SqlServerDatabase {
  return new Connections(resolveSettings(settings), options);
}

class Connections implements SqlServerDatabase {
  readonly #host: SqlServerHost & { readonly tls: boolean };
  readonly #options: ConnectOptions;
  readonly #limits: PoolLimits;
  readonly #logins: Logins;
  readonly #queryMs: () => number;
  #opening: Promise<LivingPool> | undefined;
  #ended = false;

  constructor(host: SqlServerHost & { readonly tls: boolean }, options: ConnectOptions) {
    this.#host = host;
    this.#options = options;
    this.#limits = {
      max: options.max ?? 2,
      connectTimeoutMs: options.connectTimeoutMs ?? 5_000,
      idleMs: options.idleMs ?? 60_000,
      trustedMs: options.trustedMs ?? 5_000,
      maxAgeMs: options.maxAgeMs ?? 30 * 60_000,
    };
    this.#logins = options.logins ?? loginsOf(host, {}, 1433);
    const given = options.queryTimeoutMs ?? 30_000;
    this.#queryMs = typeof given === 'function' ? given : () => given;
  }

  async query(text: string, values: unknown[] = []): Promise<DatabaseResult> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(text, values);
      } catch (error) {
        if (attempt === attempts || !(deadlock(error) || refusedByServer(error))) throw explained(error);
        // Whoever won the deadlock is to be done first; a little later each time, and not in step.
        await sleep(Math.random() * 20 * 2 ** attempt);
      }
    }
  }

  async connect(): Promise<SqlServerClient> {
    const pool = new LivingPool(
      await poolConfig(this.#host, { ...this.#limits, max: 1 }, this.#options),
      // A migration's step may be long, and its session holds a lock: it is never thought too old.
      {
        ...this.#limits,
        max: 1,
        idleMs: Number.POSITIVE_INFINITY,
        maxAgeMs: Number.POSITIVE_INFINITY,
        trustedMs: Number.POSITIVE_INFINITY,
      },
      this.#logins,
    );
    await opened(pool);
    return {
      query: (text, values = []) => runRequest(withoutLimit(pool), text, values),
      async batch(text) {
        await withoutLimit(pool).batch(text);
      },
      release: () => pool.end().catch(() => undefined),
    };
  }

  async pool(): Promise<sql.ConnectionPool> {
    return await this.#open();
  }

  async begin(limits: TransactionLimits): Promise<Transaction<SqlServerTransaction>> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await beginTransaction(await this.#open(), limits);
      } catch (error) {
        // BEGIN has no effect that could be there twice.
        if (attempt === 1 && (connectionLost(error) || refusedByServer(error))) continue;
        throw explained(error);
      }
    }
  }

  async end(): Promise<void> {
    this.#ended = true;
    const opening = this.#opening;
    this.#opening = undefined;
    const pool = await opening?.catch(() => undefined);
    await pool?.end();
  }

  async #open(): Promise<LivingPool> {
    if (this.#ended) throw new DatabaseUnavailable('the connections to the database have been closed');
    this.#opening ??= (async () => {
      const pool = new LivingPool(
        await poolConfig(this.#host, this.#limits, this.#options, this.#queryMs()),
        this.#limits,
        this.#logins,
      );
      await opened(pool);
      return pool;
    })();
    try {
      return await this.#opening;
    } catch (error) {
      // The next one tries anew.
      this.#opening = undefined;
      throw error;
    }
  }

  async #once(text: string, values: unknown[]): Promise<DatabaseResult> {
    const pool = await this.#open();
    const request = withoutLimit(pool);
    const ms = Math.max(1, this.#queryMs());
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      // Not the driver's cancel, which waits for the server to agree, for five seconds. What runs there is rolled back.
      pool.connectionOf(request)?.close();
    }, ms);
    try {
      return await runRequest(request, text, values);
    } catch (error) {
      // After a failover the old writer still answers: the next attempt asks the name anew.
      if (refusedByServer(error)) pool.connectionOf(request)?.close();
      if (!late) throw error;
      throw new DatabaseUnavailable(`the database did not answer within ${Math.round(ms)} ms`, {
        cause: error,
      });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** The time is kept by whoever waits. */
function withoutLimit(pool: LivingPool): sql.Request {
  return Object.assign(new sql.Request(pool), { overrides: { requestTimeout: 0 } });
}

async function opened(pool: LivingPool): Promise<void> {
  try {
    await pool.connect();
  } catch (error) {
    if (loginRefused(error)) throw error;
    throw explained(error);
  }
}

/** A socket's own error says little; the server's is passed on as it is, with its number. */
function explained(error: unknown): unknown {
  if (error instanceof RelayboxError || !connectionLost(error)) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new DatabaseUnavailable(`the connection to the database failed: ${reason}`, { cause: error });
}

/** What mssql is told. Exported for the test that holds what a proxy and a verified connection need. */
export async function poolConfig(
  host: SqlServerHost & { readonly tls: boolean },
  limits: PoolLimits,
  options: ConnectOptions,
  requestMs = 30_000,
): Promise<sql.config> {
  return {
    server: host.host,
    port: host.port ?? 1433,
    database: host.database,
    connectionTimeout: limits.connectTimeoutMs,
    // Of the application's own requests in a transaction; those of Relaybox keep their time by themselves.
    requestTimeout: requestMs,
    pool: {
      max: limits.max,
      min: 0,
      acquireTimeoutMillis: limits.connectTimeoutMs,
      // Idle ones are judged when they are taken; this only ends them in a process that goes on living.
      idleTimeoutMillis: Math.min(limits.idleMs, 2_147_483_647),
    },
    options: {
      encrypt: host.tls,
      trustServerCertificate: false,
      ...(host.tls ? { cryptoCredentialsDetails: { ca: await trustedCertificates(options.ca) } } : {}),
      enableArithAbort: true,
      appName: options.applicationName ?? 'relaybox',
      connectionIsolationLevel: sql.ISOLATION_LEVEL.READ_COMMITTED,
      // RDS Proxy follows the other settings that the driver sends; these three would tie the session to one server connection.
      ...(host.proxy
        ? { enableAnsiNullDefault: null, enableImplicitTransactions: null, abortTransactionOnError: null }
        : {}),
    },
  } as unknown as sql.config;
}
