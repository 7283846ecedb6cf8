import sql from 'mssql';
import type { Connection } from 'tedious';
import { type Instant, instant, since } from '../age.ts';
import { type Logins, openWith } from '../credentials.ts';
import { loginRefused } from './connection-errors.ts';

/** How many connections, and how old they may get. */
export interface PoolLimits {
  readonly max: number;
  /** Waiting for a free connection, and then for a new one to be ready, may take so long. */
  readonly connectTimeoutMs: number;
  /** A connection that nobody used for so long is closed instead of used: a sandbox was frozen, or a middlebox forgot it. */
  readonly idleMs: number;
  /** One idle for longer is asked for a sign of life first. */
  readonly trustedMs: number;
  readonly maxAgeMs: number;
}

/** What mssql's pool calls of itself. Not in its types; a test holds that it is there. */
interface PoolInternals {
  _poolCreate(): Promise<Connection>;
  _poolValidate(connection: Connection): boolean | Promise<boolean>;
  _poolDestroy(connection: Connection): Promise<void>;
  acquire(requester: object, callback?: Acquired): unknown;
  release(connection: Connection): unknown;
}

type Acquired = (error: unknown, connection?: Connection, config?: unknown) => void;

interface Life {
  readonly opened: Instant;
  used: Instant;
  /** A transaction was on it, in which the application may have SET anything. */
  dirty: boolean;
}

const inherited = sql.ConnectionPool.prototype as unknown as PoolInternals;
const signOfLifeMs = 2_000;

/**
 * mssql's pool, with what it lacks: it looks at age and idleness when a connection is taken, by the wall clock and the
 * monotonic one, since timers stand still while a sandbox is frozen; it finds a dead socket in two seconds and not in
 * fifteen; it clears what a transaction left in its session before another one borrows it; and it asks for the secret
 * again where a login is refused.
 */
export class LivingPool extends sql.ConnectionPool {
  readonly #limits: PoolLimits;
  readonly #logins: Logins;
  readonly #lives = new WeakMap<Connection, Life>();
  readonly #lent = new WeakMap<object, Connection>();
  /** mssql opens one connection to try the settings, and would throw it away. */
  #spare: Connection | undefined;

  constructor(config: sql.config, limits: PoolLimits, logins: Logins) {
    super({ ...config, validateConnection: 'socket' } as sql.config);
    this.#limits = limits;
    this.#logins = logins;
    // Without a listener an error of an idle connection would end the process; whoever uses it next is told.
    this.on('error', () => undefined);
  }

  async _poolCreate(): Promise<Connection> {
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare !== undefined && (await this._poolValidate(spare))) return spare;
    const connection = await this.#login();
    this.#lives.set(connection, { opened: instant(), used: instant(), dirty: false });
    return connection;
  }

  async _poolValidate(connection: Connection): Promise<boolean> {
    const life = this.#lives.get(connection);
    if (life === undefined || !(await inherited._poolValidate.call(this, connection))) return false;
    const idle = since(life.used);
    if (idle > this.#limits.idleMs || since(life.opened) > this.#limits.maxAgeMs) return false;
    if (!life.dirty && idle <= this.#limits.trustedMs) return true;
    // The one request that clears the session is a sign of life as well.
    const alive = await answers(connection);
    if (alive) life.dirty = false;
    else connection.close();
    return alive;
  }

  async _poolDestroy(connection: Connection): Promise<void> {
    if (this.connecting && this.#spare === undefined) {
      this.#spare = connection;
      return;
    }
    await inherited._poolDestroy.call(this, connection);
  }

  acquire(requester: object, callback?: Acquired): unknown {
    if (callback === undefined) return inherited.acquire.call(this, requester);
    const lend: Acquired = (error, connection, config) => {
      if (connection !== undefined) this.#lent.set(requester, connection);
      callback(error, connection, config);
    };
    return inherited.acquire.call(this, requester, lend);
  }

  release(connection: Connection): unknown {
    const life = this.#lives.get(connection);
    if (life !== undefined) life.used = instant();
    return inherited.release.call(this, connection);
  }

  /** The connection that a request or transaction was lent. */
  connectionOf(requester: object): Connection | undefined {
    return this.#lent.get(requester);
  }

  /** Says that the application had a transaction on the connection. */
  soil(connection: Connection | undefined): void {
    const life = connection && this.#lives.get(connection);
    if (life) life.dirty = true;
  }

  /** Closes what the connection test left over, and all the rest. */
  async end(): Promise<void> {
    this.#spare?.close();
    this.#spare = undefined;
    await this.close();
  }

  async #login(): Promise<Connection> {
    return await openWith(this.#logins, loginRefused, async ({ user, password }) => {
      // Read and used in one go by the next line, before anybody else can come between.
      Object.assign((this as unknown as { config: object }).config, { user, password });
      return await inherited._poolCreate.call(this);
    });
  }
}

/**
 * Resets the session: isolation, SET options, temporary tables. On a dead socket nothing answers, and the driver's own
 * cancel would wait for five seconds more.
 */
async function answers(connection: Connection): Promise<boolean> {
  return await new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), signOfLifeMs);
    const done = (alive: boolean): void => {
      clearTimeout(timer);
      resolve(alive);
    };
    try {
      connection.reset((error) => done(!error));
    } catch {
      done(false);
    }
  });
}
