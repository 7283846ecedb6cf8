import type pg from 'pg';
import type { SqlExecutor } from '../../executor.ts';
import { inTransaction } from '../../in-transaction.ts';
import { type DoneUnderKeys, settlingLimits } from '../../inbox/settle.ts';
import type { Transaction, TransactionLimits } from '../../inbox-store.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { lockKeys, refreshKeys } from '../sql/inbox-keys.ts';
import { type KeyLease, keyArrays } from './rows.ts';

/** What the inbox store needs of its connections: statements on autocommit, and transactions with limits. */
export interface InboxDatabase extends Database {
  begin(limits: TransactionLimits): Promise<Transaction<pg.PoolClient>>;
}

/**
 * Changes keyed rows by the rules of `sql/inbox-keys.ts`: locks the keys, lets `work` change the rows, and names each
 * key's head anew, ending the leases given.
 */
export async function changeUnderKeys<T>(
  database: InboxDatabase,
  names: Names,
  keys: readonly KeyLease[],
  work: (executor: SqlExecutor) => Promise<T>,
): Promise<DoneUnderKeys<T>> {
  return await inTransaction(database, settlingLimits, async (executor) => {
    await executor.query(lockKeys(names), keyArrays(keys));
    const answer = await work(executor);
    const tokens = keys.map((key) => key.token);
    const { rows } = await executor.query(refreshKeys(names), [...keyArrays(keys), tokens]);
    return { answer, nextTypes: rows.map((row) => String(row['head_type'])) };
  });
}
