import sql from 'mssql';
import { TransactionError } from '../../message/errors.ts';
import { runWithin, type SqlServerTransaction } from '../../store/sqlserver/transaction.ts';
import type { LazyTransaction } from '../engine.ts';

/**
 * `tx` on SQL Server: an mssql `Transaction`, so that it can be given to an ORM, which also runs a statement by itself:
 * `tx.query('INSERT INTO orders … VALUES (@p1)', [id])`.
 */
export type SqlServerTx = SqlServerTransaction;

/**
 * What ends or begins a transaction, at a batch's beginning. `BEGIN` of a block and of TRY is none of it, and a `ROLLBACK`
 * to a savepoint, which has a name, is the application's own affair.
 */
const CONTROL =
  /^(?:\s|;|--[^\n]*\n|\/\*.*?\*\/)*(begin\s+(?:distributed\s+)?tran(?:saction)?\b|commit\b|rollback\b(?!\s+tran(?:saction)?\s+[^\s;]))/is;

/** The part of an mssql transaction that its requests take their connection from; the types leave it out. */
interface ConnectionSource {
  acquire(request: unknown, callback: Acquired): unknown;
  release(connection: unknown): unknown;
}

type Acquired = (error: Error | null, connection?: unknown, config?: unknown) => void;

/** A transaction that begins at its first request, and can be ended by Relaybox alone. */
export function transactionClient(transaction: LazyTransaction<SqlServerTx>): SqlServerTx {
  const client = new LazyClient(transaction);
  return Object.assign(client, {
    query: (text: string, values: unknown[] = []) =>
      runWithin(client.request(), () => client.source, text, values),
  });
}

class LazyClient extends sql.Transaction implements ConnectionSource {
  readonly #transaction: LazyTransaction<SqlServerTx>;
  /** The driver refuses a request while another runs in its transaction; here they wait for each other. */
  #last: Promise<unknown> = Promise.resolve();
  #source: ConnectionSource | undefined;
  #done: () => void = () => undefined;

  constructor(transaction: LazyTransaction<SqlServerTx>) {
    super();
    this.#transaction = transaction;
  }

  /** The driver's own transaction, once it has begun. */
  get source(): object | undefined {
    return this.#source;
  }

  /** Requests ask for their pool's settings before there is one. They read none that Relaybox sets. */
  get config(): Readonly<Record<string, unknown>> {
    return { stream: false, arrayRowMode: false };
  }

  /** Requests ask whether there is a connection; there will be one, or the error that it could not be had. */
  get connected(): boolean {
    return true;
  }

  /** Whether the server has rolled the transaction back. Requests look there to say so. */
  get _aborted(): boolean {
    return (this.#source as { _aborted?: boolean } | undefined)?._aborted ?? false;
  }

  set _aborted(_value: boolean) {
    // The driver's own transaction keeps it.
  }

  override request(): sql.Request {
    return watched(new sql.Request(this), this.#transaction);
  }

  acquire(request: unknown, callback: Acquired): this {
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const turn = this.#last;
    this.#last = done;
    void this.#transaction.track(done);
    turn
      .then(() => this.#transaction.client())
      .then(
        (client) => {
          // What the types leave out, every transaction of the driver has.
          const source = client as unknown as ConnectionSource;
          this.#source = source;
          this.#done = resolve;
          source.acquire(request, (error, connection, config) => {
            if (error) resolve();
            callback(error, connection, config);
          });
        },
        (error: unknown) => {
          resolve();
          callback(error instanceof Error ? error : new Error(String(error)));
        },
      );
    return this;
  }

  release(connection: unknown): this {
    this.#source?.release(connection);
    this.#done();
    return this;
  }

  override begin(): never {
    return refuse();
  }

  override commit(): never {
    return refuse();
  }

  override rollback(): never {
    return refuse();
  }
}

function refuse(): never {
  throw new TransactionError(
    'Relaybox begins and ends this transaction, so that the work and its messages go together: throw to roll back',
  );
}

/**
 * Looks at what a request is to run before it does, and counts it as running from the moment that it is asked for: the
 * driver only asks for its connection a moment later.
 */
function watched(request: sql.Request, transaction: LazyTransaction<SqlServerTx>): sql.Request {
  const [query, batch] = [request.query.bind(request), request.batch.bind(request)];
  const [execute, bulk] = [request.execute.bind(request), request.bulk.bind(request)];
  const counted = <Result>(result: Result): Result =>
    result instanceof Promise ? (transaction.track(result) as Result) : result;
  return Object.assign(request, {
    query: (...args: Parameters<typeof query>) => {
      refuseControl(args[0]);
      return counted(query(...args));
    },
    batch: (...args: Parameters<typeof batch>) => {
      refuseControl(args[0]);
      return counted(batch(...args));
    },
    execute: (...args: Parameters<typeof execute>) => counted(execute(...args)),
    bulk: (...args: Parameters<typeof bulk>) => counted(bulk(...args)),
  });
}

function refuseControl(command: unknown): void {
  const text = typeof command === 'string' ? command : Array.isArray(command) ? command.join('') : '';
  const control = CONTROL.exec(text)?.[1];
  if (control === undefined) return;
  throw new TransactionError(
    `${control.toUpperCase()} was refused: Relaybox ends this transaction, so that the work and its messages go together. Use SAVE TRANSACTION for a part of it, or throw to roll back`,
  );
}
