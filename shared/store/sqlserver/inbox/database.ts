import type { SqlExecutor } from '../../executor.ts';
import { inTransaction } from '../../in-transaction.ts';
import { type DoneUnderKeys, settlingLimits } from '../../inbox/settle.ts';
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

/**
 * Changes keyed rows by the rules of `sql/inbox-keys.ts`: locks the keys, lets `work` change the rows, and names each
 * key's head anew, ending the leases given. A deadlock's victim runs again: nothing of it has happened.
 */
export async function changeUnderKeys<T>(
  database: InboxDatabase,
  names: Names,
  keys: readonly KeyLease[],
  work: (executor: SqlExecutor) => Promise<T>,
): Promise<DoneUnderKeys<T>> {
  const json = JSON.stringify(sorted(keys));
  const once = async (executor: SqlExecutor): Promise<DoneUnderKeys<T>> => {
    await executor.query(lockKeys(names), [json]);
    const answer = await work(executor);
    const { rows } = await executor.query(refreshKeys(names), [json]);
    const due = rows.filter((row) => row['due'] === 1).map((row) => String(row['head_type']));
    return { answer, nextTypes: [...new Set(due)] };
  };
  return await retried(() => inTransaction(database, settlingLimits, once));
}
