import type sql from 'mssql';
import { TransactionError } from '../../message/errors.ts';

/** What is looked at of the driver's connection. Not all of it is in its types; a test holds that it is there. */
export interface WatchedConnection {
  /** Kept by the driver from what the server says. */
  readonly inTransaction?: boolean;
  readonly closed?: boolean;
  close(): void;
  currentTransactionDescriptor?(): Buffer;
}

/** The part of an mssql transaction that its requests take their connection from. */
interface Lender {
  acquire(request: unknown, callback: (error: Error | null, ...lent: unknown[]) => void): unknown;
}

const ended =
  'the transaction was ended from inside by a COMMIT or ROLLBACK, so that a part of the work may be committed without the rest';

const watches = new WeakMap<object, TransactionWatch>();

/** How a transaction was ended from inside, as a sentence for a person; undefined while it is whole, or isn't one of ours. */
export function endedInside(transaction: object | undefined): string | undefined {
  return transaction && watches.get(transaction)?.endedInside();
}

/** Sees to it that the work can't end the transaction it is in without being found out. */
export class TransactionWatch {
  readonly #tx: sql.Transaction;
  readonly #connection: () => WatchedConnection | undefined;
  /** The server's number of this transaction: after a COMMIT and a BEGIN inside it is another one. */
  readonly #descriptor: Buffer | undefined;
  #over = false;
  #ended: string | undefined;

  constructor(tx: sql.Transaction, connection: () => WatchedConnection | undefined) {
    this.#tx = tx;
    this.#connection = connection;
    this.#descriptor = connection()?.currentTransactionDescriptor?.();
    watches.set(tx, this);
    this.#guard(tx as unknown as Lender);
  }

  /** True once Relaybox has ended it, or is about to. */
  get over(): boolean {
    return this.#over;
  }

  /** Looks a last time: from now on the connection may be another's. Answers what `endedInside` does. */
  end(): string | undefined {
    const how = this.endedInside();
    this.#over = true;
    return how;
  }

  endedInside(): string | undefined {
    if (!this.#over) this.#ended ??= this.#found();
    return this.#ended;
  }

  /**
   * A COMMIT ends the innermost transaction only. The connection is back in the pool when the caller hears of it, so this
   * looks the moment that it is answered, and closes what is still in a transaction. To be called before the COMMIT.
   */
  leftOpen(): () => boolean {
    const connection = this.#connection();
    let open = false;
    this.#tx.once('commit', () => {
      open = connection?.inTransaction === true;
      if (open) connection?.close();
    });
    return () => open;
  }

  #found(): string | undefined {
    const connection = this.#connection();
    // What the server rolled back is undone as a whole, and mssql lets nothing more be written: that is no such end.
    const { _aborted: aborted } = this.#tx as { readonly _aborted?: boolean };
    if (aborted || connection === undefined || connection.closed) return undefined;
    const descriptor = connection.currentTransactionDescriptor?.();
    const another = this.#descriptor !== undefined && descriptor?.equals(this.#descriptor) === false;
    return connection.inTransaction === false || another ? ended : undefined;
  }

  /** No request gets the connection once the transaction has been ended inside: it would be committed by itself. */
  #guard(tx: Lender): void {
    const acquire = tx.acquire.bind(tx);
    tx.acquire = (request, callback) => {
      const how = this.endedInside();
      if (how === undefined) return acquire(request, callback);
      callback(new TransactionError(how));
      return tx;
    };
  }
}
