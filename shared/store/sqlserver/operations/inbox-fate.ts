import type { SqlExecutor } from '../../executor.ts';
import type { Fates } from '../../operations/fates.ts';
import {
  decideInbox,
  discardInboxRefusal,
  type InboxDecisions,
  type LocatedInbox,
  requeueInboxRefusal,
} from '../../operations/inbox-fates.ts';
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

/** Failed → Pending; a key that was blocked goes on with it. One that could not be read is read again by ingest. */
export async function requeueInboxRows(
  context: InboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean },
): Promise<Fates> {
  const change = async (executor: SqlExecutor, some: string): Promise<readonly string[]> =>
    rowsOf(await executor.query(requeueInbox(context.names), [some])).map((row) => row.text('id'));
  return await decideInbox(decisions(context, change), ids, options, requeueInboxRefusal);
}

/** Unfinished or Failed → Discarded, unless a handler has it; its key goes on without it. */
export async function discardInboxRows(
  context: InboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean; readonly lastError: string },
): Promise<Fates> {
  const change = async (executor: SqlExecutor, some: string): Promise<readonly string[]> =>
    rowsOf(await executor.query(discardInbox(context.names), [some, options.lastError])).map((row) =>
      row.text('id'),
    );
  return await decideInbox(decisions(context, change), ids, options, discardInboxRefusal);
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
    await refresh(
      executor,
      names,
      locked.map((row) => row.text('key')),
    );
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

function decisions(
  context: InboxContext,
  change: (executor: SqlExecutor, ids: string) => Promise<readonly string[]>,
): InboxDecisions {
  return {
    locate: (ids) => locate(context, ids),
    change: (ids) => withKeys(context, ids, change),
    isLockTrouble,
  };
}

async function locate(
  { source, names }: InboxContext,
  ids: readonly string[],
): Promise<readonly LocatedInbox[]> {
  return rowsOf(await source.query(locateInbox(names), [JSON.stringify(ids)])).map((row) => ({
    id: row.text('id'),
    state: row.number('state'),
    running: row.flag('running'),
  }));
}
