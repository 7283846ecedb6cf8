import type { SqlExecutor } from '../../executor.ts';
import type { Transaction, TransactionLimits } from '../../inbox-store.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { lockKeys, refreshKeys } from '../sql/inbox-keys.ts';
import { retried } from './retry.ts';
import { type KeyLease, sorted } from './rows.ts';

/** What the inbox store needs of its connections: statements on autocommit, and transactions with limits. */
export interface InboxDatabase<Tx = unknown> extends Database {
  begin(limits: TransactionLimits): Promise<Transaction<Tx>>;
}

/** Limits of the store’s own short transactions. They wait for a key longer than a frozen holder may sit on it. */
const settling: TransactionLimits = { idleMs: 5_000, lockMs: 12_000, statementMs: 15_000 };

/**
 * Changes keyed rows by the rules of `sql/inbox-keys.ts`: locks the keys, lets `work` change the rows, and names each
 * key's head anew, ending the leases given. A deadlock's victim runs once more: nothing of it has happened.
 * @returns what `work` answered, and the types that are due next in these keys
 */
export async function changeUnderKeys<T>(
  database: InboxDatabase,
  names: Names,
  keys: readonly KeyLease[],
  work: (executor: SqlExecutor) => Promise<T>,
): Promise<{ readonly answer: T; readonly nextTypes: readonly string[] }> {
  const json = JSON.stringify(sorted(keys));
  return await retried(async () => {
    const transaction = await database.begin(settling);
    try {
      const { executor } = transaction;
      await executor.query(lockKeys(names), [json]);
      const answer = await work(executor);
      const { rows } = await executor.query(refreshKeys(names), [json]);
      await transaction.commit();
      const due = rows.filter((row) => row['due'] === 1).map((row) => String(row['head_type']));
      return { answer, nextTypes: [...new Set(due)] };
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
  });
}
