import type { Database } from '../database.ts';

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
