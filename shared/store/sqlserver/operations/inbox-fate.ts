import type { SqlExecutor } from '../../executor.ts';
import type { InboxChanges } from '../../operations/inbox-fates.ts';
import { rowsOf } from '../../operations/rows.ts';
import { deadlock, sqlNumber } from '../connection-errors.ts';
import type { Names } from '../names.ts';
import { lockKeysOfRows, refreshKeys } from '../sql/inbox-keys.ts';
import { discardInbox, locateInbox, requeueInbox } from '../sql/operations-inbox.ts';
import { inTransaction, type OperationsSource } from './session.ts';

/** What a decision about inbox rows needs. */
export interface InboxContext {
  readonly source: OperationsSource;
  readonly names: Names;
}

/** "Lock request time out period exceeded." */
const LOCK_TIMEOUT = 1222;

/** What decisions do to rows of the inbox, on SQL Server. */
export function inboxChanges(context: InboxContext): InboxChanges {
  const { source, names } = context;
  return {
    locate: async (ids) => rowsOf(await source.query(locateInbox(names), [JSON.stringify(ids)])),

    requeue: (ids) =>
      withKeys(context, ids, async (executor, some) =>
        rowsOf(await executor.query(requeueInbox(names), [some])),
      ),

    discard: (ids, lastError) =>
      withKeys(context, ids, async (executor, some) =>
        rowsOf(await executor.query(discardInbox(names), [some, lastError])),
      ),

    isLockTrouble,
  };
}

/** The rules of `inbox-keys.ts`: lock the keys, change the rows, name the heads anew; three batches, one transaction. */
export async function withKeys<T>(
  { source, names }: InboxContext,
  ids: readonly string[],
  change: (executor: SqlExecutor, ids: string) => Promise<T>,
): Promise<T> {
  const json = JSON.stringify(ids);
  return await inTransaction(source, async (executor) => {
    const locked = rowsOf(await executor.query(lockKeysOfRows(names), [json]));
    const answer = await change(executor, json);
    const keys = locked.map((row) => row.text('key'));
    await refresh(executor, names, keys);
    return answer;
  });
}

/** Names the heads of locked keys anew. A lease that runs on one goes on. */
export async function refresh(executor: SqlExecutor, names: Names, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return;
  await executor.query(refreshKeys(names), [JSON.stringify(keys.map((key) => ({ key, token: null })))]);
}

/** Somebody holds a lock that a short wait did not free, or a deadlock's victim. */
export function isLockTrouble(error: unknown): boolean {
  return deadlock(error) || sqlNumber(error) === LOCK_TIMEOUT;
}
