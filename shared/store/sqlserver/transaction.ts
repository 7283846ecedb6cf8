import sql from 'mssql';
import { DatabaseUnavailable, TransactionError } from '../../message/errors.ts';
import type { SqlExecutor } from '../executor.ts';
import type { Transaction, TransactionLimits } from '../inbox-store.ts';
import { sqlNumber } from './connection-errors.ts';
import { runRequest } from './executor.ts';
import type { LivingPool } from './pool.ts';

/** `tx` on SQL Server: an mssql `Transaction`, which can also run a statement with `@p1`-style values. */
export type SqlServerTransaction = sql.Transaction & SqlExecutor;

const commitMs = 10_000;
const rollbackMs = 2_000;

/** "The COMMIT/ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION." */
const noTransaction = new Set([3902, 3903]);

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
    query: (text: string, values: unknown[] = []) => runRequest(transaction.request(), text, values),
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
  #over = false;

  constructor(tx: SqlServerTransaction, pool: LivingPool) {
    this.tx = tx;
    this.#pool = pool;
    this.executor = { query: (text, values) => tx.query(text, values) };
  }

  async commit(): Promise<void> {
    if (this.#over) throw new TransactionError('the transaction has ended before');
    this.#over = true;
    try {
      await this.#within(commitMs, this.tx.commit());
    } catch (error) {
      throw this.#outcome(error);
    }
  }

  async rollback(): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    try {
      await this.#within(rollbackMs, this.tx.rollback());
    } catch (error) {
      // Rolled back by the server already: that is what was wanted.
      if (code(error) !== 'EABORT') this.#close();
    }
  }

  async destroy(): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    this.#close();
    // The connection goes back, and is thrown away there; mssql gives it back only by one of these.
    await this.tx.rollback().catch(() => undefined);
  }

  async usable(): Promise<boolean> {
    const connection = this.#pool.connectionOf(this.tx) as
      | { closed?: boolean; hasError?: boolean }
      | undefined;
    if (connection === undefined || connection.closed || connection.hasError) return false;
    if (this.#over || (this.tx as { _aborted?: boolean })._aborted) return true;
    try {
      await this.#within(rollbackMs, this.tx.request().batch('SELECT 1'));
      return true;
    } catch (error) {
      return sqlNumber(error) !== undefined;
    }
  }

  #outcome(error: unknown): unknown {
    if (code(error) === 'EABORT') {
      return new TransactionError(
        'the transaction was rolled back by the server before its COMMIT, since a statement in it had failed',
        { cause: error },
      );
    }
    const number = sqlNumber(error);
    if (number !== undefined && noTransaction.has(number)) {
      return new TransactionError('the transaction was ended by a COMMIT or ROLLBACK inside of it', {
        cause: error,
      });
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
