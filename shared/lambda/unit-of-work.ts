import { Deadline } from '../delivery/deadline.ts';
import { TransactionError } from '../message/errors.ts';
import type { Transaction, TransactionLimits } from '../store/inbox-store.ts';
import type { LazyTransaction } from './engine.ts';

/**
 * One transaction of one invocation: begun at first use, ended exactly once, and useless from then on, so that a
 * handler which runs on after its time can neither write nor take another connection.
 */
export class UnitOfWork<Tx> implements LazyTransaction<Tx> {
  readonly deadline: Deadline;
  readonly #open: (limits: TransactionLimits) => Promise<Transaction<Tx>>;
  #transaction: Promise<Transaction<Tx>> | undefined;
  #running = 0;
  #ended: string | undefined;

  constructor(deadline: Deadline, open: (limits: TransactionLimits) => Promise<Transaction<Tx>>) {
    this.deadline = deadline;
    this.#open = open;
  }

  /** The transaction, begun by the first caller. Rejects once it has ended. */
  begin(): Promise<Transaction<Tx>> {
    if (this.#ended !== undefined) return Promise.reject(new TransactionError(sentence(this.#ended)));
    this.#transaction ??= this.#begin();
    return this.#transaction;
  }

  async client(): Promise<Tx> {
    return (await this.begin()).tx;
  }

  async track<T>(statement: Promise<T>): Promise<T> {
    this.#running++;
    try {
      return await statement;
    } finally {
      this.#running--;
    }
  }

  /**
   * Commits, where anything was begun. Rejects where what was written may not be there: the commit failed, its outcome
   * isn't known, or a statement still runs that nobody waits for.
   */
  async commit(): Promise<void> {
    if (this.#running > 0) {
      const reason = 'a statement was still running when the handler returned, so it was rolled back';
      this.abandon(reason);
      throw new TransactionError(`${sentence(reason)}: await every statement`);
    }
    const before = this.#ended;
    if (!this.#end('the handler had returned, and it was committed')) {
      // Nobody may be told of success whose work is gone.
      if (this.#transaction) throw new TransactionError(sentence(before ?? ''));
      return;
    }
    const transaction = await this.#transaction;
    await transaction?.commit();
  }

  /**
   * Rolls back, where anything was begun. Never rejects.
   * @returns why a part of it can't be taken back: the handler had ended the transaction itself
   */
  async rollback(): Promise<string | undefined> {
    // A rollback would wait its turn behind a statement that runs; closing the connection doesn't.
    if (this.#running > 0) {
      this.abandon('the invocation had failed, and it was rolled back');
      return undefined;
    }
    const first = this.#end('the invocation had failed, and it was rolled back');
    const transaction = await this.#transaction?.catch(() => undefined);
    if (first) await transaction?.rollback();
    return transaction?.endedInside?.();
  }

  /** Closes the connection under the transaction at once, without waiting for it. */
  abandon(reason: string): void {
    if (!this.#end(reason)) return;
    this.#transaction?.then(
      (transaction) => transaction.destroy(),
      () => undefined,
    );
  }

  #end(reason: string): boolean {
    if (this.#ended !== undefined) return false;
    this.#ended = reason;
    return true;
  }

  async #begin(): Promise<Transaction<Tx>> {
    const transaction = await this.#open(limitsOf(this.deadline));
    // It ended while it was connecting: whoever ended it destroys it, and whoever waits for it must not use it.
    if (this.#ended !== undefined) {
      await transaction.destroy();
      throw new TransactionError(sentence(this.#ended));
    }
    return transaction;
  }
}

function sentence(reason: string): string {
  return `The transaction has ended: ${reason}`;
}

/**
 * The server ends by itself what outlives the invocation: a frozen or killed function can't. Statements end a little
 * earlier, so that their error still reaches the handler. Zero would mean "no limit", so the least is one.
 */
export function limitsOf(deadline: Deadline): TransactionLimits {
  const leftMs = Math.max(1, Math.floor(deadline.remainingMs()));
  const statementMs = Math.max(1, leftMs - Math.min(500, Math.floor(leftMs / 10)));
  return { idleMs: leftMs, lockMs: statementMs, statementMs };
}

/** The invocation's end. Outside Lambda, where nobody says when that is, Lambda's own longest time. */
export function deadlineOf(context: { getRemainingTimeInMillis?: () => number }): Deadline {
  return Deadline.in(context.getRemainingTimeInMillis?.() ?? 900_000);
}
