import type { SqlExecutor } from '../../executor.ts';
import { inTransaction as once } from '../../in-transaction.ts';
import type { TransactionLimits } from '../../inbox-store.ts';
import type { InboxDatabase } from '../inbox/database.ts';
import { retried } from '../inbox/retry.ts';

/** Where operations take connections from: what `connect` of the store answers. */
export type OperationsSource = InboxDatabase;

/** Changes a few rows. The bounds see to it that a command which is killed leaves no lock behind for long. */
const writing: TransactionLimits = { idleMs: 10_000, lockMs: 3_000, statementMs: 20_000 };

/** Runs the work in one short transaction; again where the server undid it for another's sake. */
export async function inTransaction<T>(
  source: OperationsSource,
  work: (executor: SqlExecutor) => Promise<T>,
): Promise<T> {
  return await retried(() => once(source, writing, work));
}
