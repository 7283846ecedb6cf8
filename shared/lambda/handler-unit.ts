import { TransactionError } from '../message/errors.ts';
import type { Transaction } from '../store/inbox-store.ts';
import type { OpenUnit } from './bound-outbox.ts';
import type { LazyTransaction } from './engine.ts';

/**
 * A message handler's view of the transaction that the inbox begins and ends. Once the handler has returned it is
 * closed: what it did not wait for must not run into the mark, the commit, or the connection's next user.
 */
export class HandlerUnit<Tx> implements OpenUnit<Tx>, LazyTransaction<Tx> {
  readonly #transaction: Transaction<Tx>;
  #running = 0;
  #closed = false;

  constructor(transaction: Transaction<Tx>) {
    this.#transaction = transaction;
  }

  async begin(): Promise<Transaction<Tx>> {
    if (this.#closed) throw new TransactionError('The transaction was used after its handler had returned');
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

  /** Throws where a statement still runs: then the transaction must be rolled back. */
  close(): void {
    this.#closed = true;
    if (this.#running > 0) {
      throw new TransactionError(
        'A statement was still running when the handler returned, so nothing of it is committed: await every statement',
      );
    }
  }
}
