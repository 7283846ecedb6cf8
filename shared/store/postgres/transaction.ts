import type pg from 'pg';
import { DatabaseUnavailable, TransactionError } from '../../message/errors.ts';
import type { SqlExecutor } from '../executor.ts';
import type { Transaction, TransactionLimits } from '../inbox-store.ts';
import { refusedByServer } from './connection-errors.ts';
import { resetSettings } from './isolation.ts';
import { cut } from './pool.ts';
import { TransactionWatch } from './transaction-watch.ts';

/** A COMMIT may wait for a standby; nobody should wait longer for the answer. */
const commitMs = 10_000;
const rollbackMs = 2_000;
const resetMs = 2_000;

/**
 * Begins a transaction in one round trip with its limits, so that the server itself ends what a killed or frozen
 * function leaves behind.
 *
 * @param attempt runs the first statement, and rejects where it isn't answered in time
 */
export async function beginTransaction(
  client: pg.PoolClient,
  limits: TransactionLimits,
  attempt: <Result>(work: () => Promise<Result>) => Promise<Result>,
): Promise<Transaction<pg.PoolClient>> {
  const answers = (await attempt(() => client.query(beginSql(limits)))) as unknown as pg.QueryResult[];
  // After a failover the old writer answers as a standby.
  if (answers.at(-1)?.rows[0]?.transaction_read_only === 'on') {
    throw Object.assign(new Error('this server is read-only now'), { code: '25006' });
  }
  return new PostgresTransaction(client);
}

/** `SET LOCAL` ends with the transaction, so it pins no proxy. Zero would mean "no limit", so the least is one. */
function beginSql(limits: TransactionLimits): string {
  const ms = (value: number): number => Math.max(1, Math.min(2_147_483_647, Math.ceil(value)));
  return [
    'BEGIN ISOLATION LEVEL READ COMMITTED',
    `SET LOCAL idle_in_transaction_session_timeout = ${ms(limits.idleMs)}`,
    `SET LOCAL lock_timeout = ${ms(limits.lockMs)}`,
    `SET LOCAL statement_timeout = ${ms(limits.statementMs)}`,
    'SHOW transaction_read_only',
  ].join('; ');
}

class PostgresTransaction implements Transaction<pg.PoolClient> {
  readonly tx: pg.PoolClient;
  readonly executor: SqlExecutor;
  readonly #watch: TransactionWatch;
  #over = false;
  #released = false;

  constructor(client: pg.PoolClient) {
    this.tx = client;
    this.#watch = new TransactionWatch(client);
    this.executor = {
      query: async (text, values) => {
        this.#watch.check();
        return await client.query(text, values);
      },
    };
  }

  async commit(): Promise<void> {
    this.#begun();
    this.#over = true;
    const ended = this.endedInside();
    if (ended !== undefined) {
      this.#release(true);
      throw new TransactionError(ended);
    }
    this.#watch.stop();
    let command: string;
    try {
      ({ command } = await within(this.tx, commitMs, this.tx.query('COMMIT')));
    } catch (error) {
      this.#release(true);
      throw unknownOutcome(error);
    }
    // The roll-back of a transaction takes its settings back by itself.
    const clean = !this.#watch.settings || command !== 'COMMIT' || (await this.#reset());
    this.#release(!clean);
    // What PostgreSQL answers where a statement had failed before, whether or not somebody caught its error.
    if (command !== 'COMMIT') {
      throw new TransactionError(
        'the transaction was rolled back at its COMMIT, since a statement in it had failed',
      );
    }
  }

  async rollback(): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    this.#watch.stop();
    try {
      await within(this.tx, rollbackMs, this.tx.query('ROLLBACK'));
      this.#release(false);
    } catch {
      this.#release(true);
    }
  }

  async destroy(): Promise<void> {
    // Not once it is back in the pool and may be another's; but while a COMMIT is under way, who waits for that gets its error.
    if (this.#released) return;
    cut(this.tx);
    if (this.#over) return;
    this.#over = true;
    this.#release(true);
  }

  endedInside(): string | undefined {
    return this.#watch.ended();
  }

  /** The connection's next user must not find this one's settings or role. False where they could not be reset. */
  async #reset(): Promise<boolean> {
    try {
      await within(this.tx, resetMs, this.tx.query(resetSettings(this.tx)));
      return true;
    } catch {
      return false;
    }
  }

  #release(destroy: boolean): void {
    this.#watch.stop();
    this.#released = true;
    this.tx.release(destroy);
  }

  #begun(): void {
    if (this.#over) throw new TransactionError('the transaction has ended before');
  }
}

/** The server's own refusal, of a deferred constraint say, is a roll-back; silence may be either. */
function unknownOutcome(error: unknown): unknown {
  if ((error as { severity?: unknown }).severity !== undefined && !refusedByServer(error)) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new DatabaseUnavailable(
    `the outcome of COMMIT isn't known (${reason}): count the work as not done, and let it be tried again`,
    { cause: error },
  );
}

async function within<Result>(client: pg.PoolClient, ms: number, answer: Promise<Result>): Promise<Result> {
  const timer = setTimeout(() => cut(client), ms);
  try {
    return await answer;
  } finally {
    clearTimeout(timer);
  }
}
