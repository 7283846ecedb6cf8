import type { SqlExecutor } from './executor.ts';
import type { Transaction, TransactionLimits } from './inbox-store.ts';

/** Runs the work in one transaction of Relaybox's own: committed where it answers, rolled back where it throws. */
export async function inTransaction<T>(
  database: { begin(limits: TransactionLimits): Promise<Transaction<unknown>> },
  limits: TransactionLimits,
  work: (executor: SqlExecutor) => Promise<T>,
): Promise<T> {
  const transaction = await database.begin(limits);
  try {
    const answer = await work(transaction.executor);
    await transaction.commit();
    return answer;
  } catch (error) {
    await transaction.rollback();
    throw error;
  }
}
