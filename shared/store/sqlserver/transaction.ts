import sql from 'mssql';
import { DatabaseUnavailable, TransactionError } from '../../message/errors.ts';
import type { SqlExecutor } from '../executor.ts';
import type { Transaction, TransactionLimits } from '../inbox-store.ts';
import { sqlNumber } from './connection-errors.ts';
import type { DatabaseResult } from './database.ts';
import { runRequest } from './executor.ts';
import type { LivingPool } from './pool.ts';
import { endedInside, TransactionWatch, type WatchedConnection } from './transaction-watch.ts';

/** `tx` on SQL Server: an mssql `Transaction`, which can also run a statement with `@p1`-style values. */
export type SqlServerTransaction = sql.Transaction & SqlExecutor;

const commitMs = 10_000;
const rollbackMs = 2_000;

/** "The COMMIT/ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION." */
const noTransaction = new Set([3902, 3903]);

const unended =
  'a BEGIN TRANSACTION inside of the transaction was not followed by its COMMIT, so nothing of it was committed';

/**
 * Runs a statement in a transaction. Rejects with `TransactionError` where it ended the transaction: what follows would
 * run in none, and be committed by itself, or in another one.
 *
 * @param of the transaction that lends the connection; asked afterwards, since it may begin with this statement
 */
export async function runWithin(
  request: sql.Request,
  of: () => object | undefined,
  text: string,
  values: unknown[],
): Promise<DatabaseResult> {
  try {
    const result = await runRequest(request, text, values);
    const end = endedInside(of());
    if (end === undefined) return result;
    throw new TransactionError(end);
  } catch (error) {
    const end = error instanceof TransactionError ? undefined : endedInside(of());
    if (end === undefined) throw error;
    throw new TransactionError(end, { cause: error });
  }
}

/**
 * Begins a transaction at READ COMMITTED with its limits.
 *
 * A lock is waited for so long, and a statement too. There is no limit on the server for a session that does nothing
 * in its transaction: a frozen function's locks go when its socket does, which the server's keepalive finds.
 */
export async function beginTransaction(
  pool: LivingPool,
  limits: TransactionLimits,
): Promise<Transaction<SqlServerTransaction>> {
  const transaction = new sql.Transaction(pool);
  // Each request of the transaction takes it from here; the types don't know of it.
  Object.assign(transaction, { overrides: { requestTimeout: whole(limits.statementMs) } });
  await transaction.begin(sql.ISOLATION_LEVEL.READ_COMMITTED);
  pool.soil(pool.connectionOf(transaction));
  const tx: SqlServerTransaction = Object.assign(transaction, {
    query: (text: string, values: unknown[] = []) =>
      runWithin(transaction.request(), () => transaction, text, values),
  });
  const begun = new OpenTransaction(tx, pool);
  try {
    // For the whole session, but the pool clears it before the next one has the connection.
    await transaction.request().batch(`SET LOCK_TIMEOUT ${whole(limits.lockMs)}`);
  } catch (error) {
    await begun.destroy();
    throw error;
  }
  return begun;
}

/** Zero would mean "at once" for a lock and "never" for a statement, so the least is one. */
function whole(ms: number): number {
  return Math.max(1, Math.min(2_147_483_647, Math.ceil(ms)));
}

class OpenTransaction implements Transaction<SqlServerTransaction> {
  readonly tx: SqlServerTransaction;
  readonly executor: SqlExecutor;
  readonly #pool: LivingPool;
  readonly #watch: TransactionWatch;

  constructor(tx: SqlServerTransaction, pool: LivingPool) {
    this.tx = tx;
    this.#pool = pool;
    this.executor = { query: (text, values) => tx.query(text, values) };
    this.#watch = new TransactionWatch(tx, () => pool.connectionOf(tx) as WatchedConnection | undefined);
  }

  async commit(): Promise<void> {
    if (this.#watch.over) throw new TransactionError('the transaction has ended before');
    const how = this.#watch.end();
    if (how !== undefined) {
      await this.#discard();
      throw new TransactionError(how);
    }
    const left = this.#watch.leftOpen();
    try {
      await this.#within(commitMs, this.tx.commit());
    } catch (error) {
      throw this.#outcome(error);
    }
    if (left()) throw new TransactionError(unended);
  }

  async rollback(): Promise<void> {
    if (this.#watch.over) return;
    this.#watch.end();
    try {
      await this.#within(rollbackMs, this.tx.rollback());
    } catch (error) {
      // Rolled back by the server already: that is what was wanted.
      if (code(error) !== 'EABORT') await this.#discard();
    }
  }

  async destroy(): Promise<void> {
    if (this.#watch.over) return;
    this.#watch.end();
    await this.#discard();
  }

  endedInside(): string | undefined {
    return this.#watch.endedInside();
  }

  #outcome(error: unknown): unknown {
    if (code(error) === 'EABORT') {
      return new TransactionError(
        'the transaction was rolled back before its COMMIT, by the server after a failed statement or by a ROLLBACK inside of it',
        { cause: error },
      );
    }
    const number = sqlNumber(error);
    if (number !== undefined && noTransaction.has(number)) {
      return new TransactionError('the transaction had ended before its COMMIT', { cause: error });
    }
    // The server's own refusal is a roll-back; silence may be either.
    if (number !== undefined) return error;
    this.#close();
    const reason = error instanceof Error ? error.message : String(error);
    return new DatabaseUnavailable(
      `the outcome of COMMIT isn't known (${reason}): count the work as not done, and let it be tried again`,
      { cause: error },
    );
  }

  /** Closes the connection, and gives it back, where it is thrown away: mssql does that only at an end of its own. */
  async #discard(): Promise<void> {
    this.#close();
    for (let attempt = 1; attempt <= 5; attempt++) {
      try {
        await this.tx.rollback();
        return;
      } catch (error) {
        // The request that was under way hears of the closed connection first.
        if (code(error) !== 'EREQINPROG') return;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  #close(): void {
    this.#pool.connectionOf(this.tx)?.close();
  }

  /** Closes the connection where no answer comes, so that whoever waits for it gets its error. */
  async #within<Result>(ms: number, answer: Promise<Result>): Promise<Result> {
    const timer = setTimeout(() => this.#close(), ms);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
    }
  }
}

function code(error: unknown): unknown {
  return (error as { code?: unknown } | null)?.code;
}
