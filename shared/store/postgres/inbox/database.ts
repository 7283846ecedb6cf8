import type pg from 'pg';
import type { SqlExecutor } from '../../executor.ts';
import type { Transaction, TransactionLimits } from '../../inbox-store.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { lockKeys, refreshKeys } from '../sql/inbox-keys.ts';
import { type KeyLease, keyArrays } from './rows.ts';

/** What the inbox store needs of its connections: statements on autocommit, and transactions with limits. */
export interface InboxDatabase extends Database {
  begin(limits: TransactionLimits): Promise<Transaction<pg.PoolClient>>;
}

/** Limits of the store’s own short transactions. They wait for a key longer than a frozen holder may sit on it. */
const settling: TransactionLimits = { idleMs: 5_000, lockMs: 12_000, statementMs: 15_000 };

/**
 * Changes keyed rows by the rules of `sql/inbox-keys.ts`: locks the keys, lets `work` change the rows, and names each
 * key's head anew, ending the leases given.
 * @returns what `work` answered, and the types that are due next in these keys
 */
export async function changeUnderKeys<T>(
  database: InboxDatabase,
  names: Names,
  keys: readonly KeyLease[],
  work: (executor: SqlExecutor) => Promise<T>,
): Promise<{ readonly answer: T; readonly nextTypes: readonly string[] }> {
  const transaction = await database.begin(settling);
  try {
    const { executor } = transaction;
    await executor.query(lockKeys(names), keyArrays(keys));
    const answer = await work(executor);
    const { rows } = await executor.query(refreshKeys(names), [
      ...keyArrays(keys),
      keys.map((key) => key.token),
    ]);
    await transaction.commit();
    return { answer, nextTypes: rows.map((row) => String(row['head_type'])) };
  } catch (error) {
    await transaction.rollback();
    throw error;
  }
}
