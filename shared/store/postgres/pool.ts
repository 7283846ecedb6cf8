import pg from 'pg';
import { DatabaseUnavailable } from '../../message/errors.ts';
import { type Instant, instant, since } from '../age.ts';

/** How many connections, and how old they may get. */
export interface PoolLimits {
  readonly max: number;
  /** Waiting for a free connection, and then for a new one to be ready, may take so long. */
  readonly connectTimeoutMs: number;
  /** A connection that nobody used for so long is closed instead of used: a sandbox was frozen, or a middlebox forgot it. */
  readonly idleMs: number;
  /** A connection older than this is closed instead of used. */
  readonly maxAgeMs: number;
}

/** A connection in somebody's hands. */
export interface Lease {
  readonly client: pg.PoolClient;
  /** False where it has been used before, and may have died since. */
  readonly fresh: boolean;
  /** Milliseconds since its last use. */
  readonly idleMs: number;
}

interface Entry {
  readonly client: pg.Client;
  readonly opened: Instant;
  used: Instant;
  dead: boolean;
}

interface Waiter {
  readonly give: (entry: Entry | 'open') => void;
  readonly fail: (error: Error) => void;
}

/**
 * A pool that trusts no timer: they stand still while a sandbox is frozen. Age and idleness are looked at when a
 * connection is taken, by the wall clock and the monotonic one, whichever says more.
 */
export class ConnectionPool {
  readonly #open: () => Promise<pg.Client>;
  readonly #limits: PoolLimits;
  readonly #idle: Entry[] = [];
  readonly #waiting: Waiter[] = [];
  readonly #all = new Set<Entry>();
  /** Connections that are there or being opened. */
  #count = 0;
  #ended = false;

  constructor(open: () => Promise<pg.Client>, limits: PoolLimits) {
    this.#open = open;
    this.#limits = limits;
  }

  /** A connection of one's own until its `release`; opened where none is free. */
  async take(): Promise<Lease> {
    if (this.#ended) throw new DatabaseUnavailable('the connections to the database have been closed');
    for (let entry = this.#idle.pop(); entry; entry = this.#idle.pop()) {
      if (this.#usable(entry)) return this.#lease(entry, false);
      this.#close(entry);
    }
    if (this.#count < this.#limits.max) {
      this.#count += 1;
      return await this.#openOne();
    }
    const entry = await this.#wait();
    return entry === 'open' ? await this.#openOne() : this.#lease(entry, false);
  }

  /** Closes idle connections now, and those in use when they come back. */
  async end(): Promise<void> {
    this.#ended = true;
    for (const waiter of this.#waiting.splice(0)) {
      waiter.fail(new DatabaseUnavailable('the connections to the database have been closed'));
    }
    const idle = this.#idle.splice(0);
    // Whoever waits for the end is to see it: with nothing else to do, the process would be over before.
    for (const entry of idle) hold(entry.client, true);
    await Promise.all(idle.map((entry) => this.#close(entry)));
  }

  /** Opens a connection in a place that is counted already. */
  async #openOne(): Promise<Lease> {
    let client: pg.Client;
    try {
      client = await this.#open();
    } catch (error) {
      this.#free();
      throw error;
    }
    const entry: Entry = { client, opened: instant(), used: instant(), dead: false };
    this.#all.add(entry);
    // Without a listener the error of an idle connection would end the process.
    client.on('error', () => this.#died(entry));
    client.on('end', () => this.#died(entry));
    return this.#lease(entry, true);
  }

  #lease(entry: Entry, fresh: boolean): Lease {
    const idleMs = since(entry.used);
    hold(entry.client, true);
    let released = false;
    const release = (destroy?: Error | boolean): void => {
      if (released) return;
      released = true;
      this.#back(entry, Boolean(destroy));
    };
    return { client: Object.assign(entry.client, { release }), fresh, idleMs };
  }

  #back(entry: Entry, destroy: boolean): void {
    entry.used = instant();
    const inTransaction = entry.client.getTransactionStatus() !== 'I';
    if (destroy || inTransaction || entry.dead || this.#ended) {
      this.#close(entry);
      return;
    }
    const waiter = this.#waiting.shift();
    if (waiter) {
      waiter.give(entry);
      return;
    }
    hold(entry.client, false);
    this.#idle.push(entry);
  }

  #usable(entry: Entry): boolean {
    return (
      !entry.dead && since(entry.used) <= this.#limits.idleMs && since(entry.opened) <= this.#limits.maxAgeMs
    );
  }

  #died(entry: Entry): void {
    entry.dead = true;
    const index = this.#idle.indexOf(entry);
    // One in somebody's hands is closed when it comes back.
    if (index < 0) return;
    this.#idle.splice(index, 1);
    this.#close(entry);
  }

  async #close(entry: Entry): Promise<void> {
    if (!this.#all.delete(entry)) return;
    entry.dead = true;
    this.#free();
    const busy = entry.client.getTransactionStatus() !== 'I';
    // A goodbye on a dead socket waits for nobody; one in mid-statement has to be cut, not asked.
    if (busy) entry.client.connection.stream.destroy();
    await Promise.race([entry.client.end().catch(() => undefined), soon(entry.client)]);
  }

  /** A place has become free: the first in the queue opens a connection in it, so that nobody slips in between. */
  #free(): void {
    const waiter = this.#waiting.shift();
    if (waiter) waiter.give('open');
    else this.#count -= 1;
  }

  async #wait(): Promise<Entry | 'open'> {
    const { connectTimeoutMs, max } = this.#limits;
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const index = this.#waiting.indexOf(waiter);
        if (index >= 0) this.#waiting.splice(index, 1);
        reject(
          new DatabaseUnavailable(
            `all ${max} connections to the database were in use for ${connectTimeoutMs} ms`,
          ),
        );
      }, connectTimeoutMs);
      const waiter: Waiter = {
        give: (entry) => {
          clearTimeout(timer);
          resolve(entry);
        },
        fail: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      };
      this.#waiting.push(waiter);
    });
  }
}

/** Closes the socket at once, whatever the connection is doing. */
export function cut(client: pg.ClientBase): void {
  if (client instanceof pg.Client) client.connection.stream.destroy();
}

/** An idle connection doesn't keep the process alive. */
function hold(client: pg.Client, held: boolean): void {
  const { stream } = client.connection;
  if (
    'ref' in stream &&
    typeof stream.ref === 'function' &&
    'unref' in stream &&
    typeof stream.unref === 'function'
  ) {
    if (held) stream.ref();
    else stream.unref();
  }
}

/** A second's grace for a goodbye, then the socket is closed anyway. */
async function soon(client: pg.Client): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => {
      client.connection.stream.destroy();
      resolve();
    }, 1000);
    timer.unref();
    client.once('end', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
