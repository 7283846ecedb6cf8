import pg from 'pg';
import { TransactionError } from '../../message/errors.ts';
import { watchOf } from '../../store/postgres/transaction-watch.ts';
import type { LazyTransaction } from '../engine.ts';
import { controlOf } from './control.ts';

/** `tx` on PostgreSQL: a `pg` client as far as queries go, so that it can be given to an ORM. */
export type PostgresTx = pg.PoolClient;

/**
 * A client whose transaction begins at its first query, and can be ended by Relaybox alone. Being a `pg` client it can
 * be handed to Drizzle, or to Kysely as what its pool's `connect` answers: `release` does nothing.
 */
export function transactionClient(transaction: LazyTransaction<PostgresTx>): PostgresTx {
  const query = (...args: readonly unknown[]): unknown => {
    const [first] = args;
    if (isSubmittable(first)) return submit(transaction, first);
    const callback = args.at(-1);
    const rest = typeof callback === 'function' ? args.slice(0, -1) : args;
    const result = transaction.track(inTurn(() => run(transaction, rest)));
    if (typeof callback !== 'function') return result;
    result.then(
      (answer) => callback(undefined, answer),
      (error: unknown) => callback(error),
    );
    return undefined;
  };
  // One at a time: the driver's own queue for statements that are not awaited goes away with its next version.
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = (work: () => Promise<unknown>): Promise<unknown> => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  };
  const refuse = () =>
    Promise.reject(new TransactionError('Relaybox opens and closes the connection of this transaction'));
  // A client that never connects: it lends its type and its helpers, such as `escapeIdentifier`.
  return Object.assign(new pg.Client(), { query, release: () => undefined, connect: refuse, end: refuse });
}

async function run(transaction: LazyTransaction<PostgresTx>, args: readonly unknown[]): Promise<unknown> {
  const [first, values] = args;
  // The config form goes through whole: `rowMode` and `types` are how ORMs ask for their rows.
  const config = typeof first === 'string' ? { text: first } : configOf(first);
  refuseControl(config.text);
  const tx = await transaction.client();
  const watch = watchOf(tx);
  watch?.check();
  // It hides in a SELECT, where the server's answer doesn't tell it.
  if (watch && /\bset_config\b/i.test(config.text)) watch.settings = true;
  let result: unknown;
  try {
    result = await tx.query(config, Array.isArray(values) ? values : undefined);
  } catch (error) {
    watch?.check(error);
    throw error;
  }
  if (chained(config.text, result)) watch?.end('ROLLBACK AND CHAIN');
  watch?.check();
  return result;
}

/** `ROLLBACK AND CHAIN` leaves a transaction as `ROLLBACK TO` does; only the text tells which one it was. */
function chained(text: string, result: unknown): boolean {
  const commands = (Array.isArray(result) ? result : [result]) as readonly { readonly command?: unknown }[];
  return commands.some(({ command }) => command === 'ROLLBACK') && /\bchain\b/i.test(text);
}

function refuseControl(text: string): void {
  const control = controlOf(text);
  if (control === undefined) return;
  throw new TransactionError(
    `${control.toUpperCase()} was refused: Relaybox ends this transaction, so that the work and its messages go together. Use SAVEPOINT for a part of it, or throw to roll back`,
  );
}

function configOf(first: unknown): pg.QueryConfig {
  if (typeof first === 'object' && first !== null && 'text' in first && typeof first.text === 'string') {
    return { ...first, text: first.text };
  }
  throw new TypeError('tx.query takes a text, or an object with a text');
}

/** A cursor or a stream: it is answered at once, and reads once it is submitted. */
function submit(transaction: LazyTransaction<PostgresTx>, submittable: pg.Submittable): pg.Submittable {
  const begun = async (): Promise<PostgresTx> => {
    if ('text' in submittable && typeof submittable.text === 'string') refuseControl(submittable.text);
    const tx = await transaction.client();
    watchOf(tx)?.check();
    return tx;
  };
  begun().then(
    (tx) => tx.query(submittable),
    (error: unknown) => {
      if ('handleError' in submittable && typeof submittable.handleError === 'function') {
        submittable.handleError(error);
      }
    },
  );
  return submittable;
}

function isSubmittable(value: unknown): value is pg.Submittable {
  return (
    typeof value === 'object' && value !== null && 'submit' in value && typeof value.submit === 'function'
  );
}
