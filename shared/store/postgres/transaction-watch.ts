import pg from 'pg';
import { TransactionError } from '../../message/errors.ts';

const watches = new WeakMap<object, TransactionWatch>();

/** The watch over the transaction that runs on a connection, if there is one. */
export function watchOf(client: pg.ClientBase): TransactionWatch | undefined {
  return watches.get(client);
}

/** Commands that end a transaction, or begin one where another was. `ROLLBACK` may be one to a savepoint. */
const ending = ['COMMIT', 'PREPARE TRANSACTION', 'BEGIN', 'START TRANSACTION'];

/**
 * Watches a transaction by what the server says after each command. A text may hold several, and one that ends the
 * transaction is seen whether its text succeeds as a whole or not.
 */
export class TransactionWatch {
  /** True once the work may have changed settings of the session, which outlive a commit. */
  settings = false;
  readonly #client: pg.ClientBase;
  #last = '';
  #endedBy: string | undefined;
  readonly #commandComplete = ({ text }: { readonly text: string }): void => {
    this.#last = text;
    if (text === 'SET') this.settings = true;
    if (ending.includes(text)) this.end(text);
  };
  readonly #readyForQuery = ({ status }: { readonly status: string }): void => {
    if (status === 'I') this.end(this.#last || 'ROLLBACK');
  };

  /** Begins with a connection whose transaction has begun. */
  constructor(client: pg.ClientBase) {
    this.#client = client;
    watches.set(client, this);
    if (!(client instanceof pg.Client)) return;
    client.connection.on('commandComplete', this.#commandComplete);
    client.connection.on('readyForQuery', this.#readyForQuery);
  }

  /** Notes that the transaction was ended from inside. */
  end(command: string): void {
    this.#endedBy ??= command;
  }

  /** How it was ended from inside, as a sentence for a person; undefined while it is whole. */
  ended(): string | undefined {
    if (this.#endedBy === undefined) return undefined;
    return `the transaction was ended from inside by ${this.#endedBy}, so that a part of the work may be committed without the rest`;
  }

  /** Throws where it was ended from inside: what follows would run in no transaction, or in another one. */
  check(cause?: unknown): void {
    const ended = this.ended();
    if (ended === undefined) return;
    throw new TransactionError(ended, cause === undefined ? {} : { cause });
  }

  /** Before Relaybox itself ends the transaction. */
  stop(): void {
    watches.delete(this.#client);
    if (!(this.#client instanceof pg.Client)) return;
    this.#client.connection.off('commandComplete', this.#commandComplete);
    this.#client.connection.off('readyForQuery', this.#readyForQuery);
  }
}
