import type { Database, DatabaseResult } from '../database.ts';

/** Where operations take connections from: a `pg.Pool`, or what `connect` of the store answers. */
export interface OperationsSource extends Database {
  connect(): Promise<OperationsClient>;
}

/** A connection in one pair of hands. */
export interface OperationsClient extends Database {
  release(destroy?: boolean): void;
}

/** Reads one consistent state; never from a table as a whole, whatever the planner makes of stale statistics. */
export const reading =
  "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '20s'; SET LOCAL lock_timeout = '3s'; SET LOCAL idle_in_transaction_session_timeout = '30s'; SET LOCAL enable_seqscan = off; SET LOCAL jit = off";

/** Changes a few rows. The bounds see to it that a command which is killed leaves no lock behind. */
export const writing =
  "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = '20s'; SET LOCAL lock_timeout = '3s'; SET LOCAL idle_in_transaction_session_timeout = '10s'; SET LOCAL enable_seqscan = off; SET LOCAL jit = off";

/** Runs the work in one short transaction. A connection that fails to end it is destroyed, not given back. */
export async function inTransaction<T>(
  source: OperationsSource,
  begin: string,
  work: (client: Database) => Promise<T>,
): Promise<T> {
  const client = await source.connect();
  let destroy = true;
  try {
    await client.query(begin);
    const answer = await work(client);
    await client.query('COMMIT');
    destroy = false;
    return answer;
  } catch (error) {
    destroy = await client.query('ROLLBACK').then(
      () => false,
      () => true,
    );
    throw error;
  } finally {
    client.release(destroy);
  }
}

/** One answered row, read by column and type. What isn't as expected is a fault of ours, and says which column. */
export class Row {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(values: Readonly<Record<string, unknown>>) {
    this.#values = values;
  }

  /** Text, a number or a bigint's digits, as text. */
  text(column: string): string {
    const value = this.#values[column];
    if (typeof value === 'string') return value;
    if (typeof value === 'number' || typeof value === 'bigint') return String(value);
    throw new Error(`column ${column} of an operator's query is ${value === null ? 'null' : typeof value}`);
  }

  textOrNull(column: string): string | null {
    return this.#values[column] == null ? null : this.text(column);
  }

  /** A count or another number that is small by its nature. */
  number(column: string): number {
    return Number(this.text(column));
  }

  numberOrNull(column: string): number | null {
    return this.#values[column] == null ? null : this.number(column);
  }

  flag(column: string): boolean {
    return this.#values[column] === true;
  }

  raw(column: string): unknown {
    return this.#values[column] ?? null;
  }
}

/** The rows of an answer. */
export function rowsOf(result: DatabaseResult): readonly Row[] {
  return result.rows.map((row) => new Row(row));
}
