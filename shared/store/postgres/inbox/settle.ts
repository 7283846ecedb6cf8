import { storable } from '../../../message/text.ts';
import type { SqlExecutor } from '../../executor.ts';
import type {
  ClaimedInboxMessage,
  FailedHandling,
  InboxSettleResult,
  Transaction,
} from '../../inbox-store.ts';
import type { OnFailedKey } from '../../outbox-store.ts';
import type { Names } from '../names.ts';
import {
  lockKeyToMark,
  markFailed,
  markKeyedProcessed,
  markProcessed,
  release,
} from '../sql/inbox-settle.ts';
import { changeUnderKeys, type InboxDatabase } from './database.ts';
import { keysOf } from './rows.ts';

/** How long a transaction may stand still between its mark and its commit. */
const LAST_IDLE_MS = 5_000;

/** Marks a message in its handler's transaction: one statement, or for a keyed message two. */
export async function mark(
  names: Names,
  transaction: Transaction<unknown>,
  message: ClaimedInboxMessage,
  idleMs: number,
): Promise<{ readonly nextTypes: readonly string[] } | undefined> {
  const { executor } = transaction;
  const { consumer, source, partitionKey, rowId, lockToken } = message;
  if (partitionKey === null) {
    const { rows } = await executor.query(markProcessed(names), [rowId, lockToken]);
    return rows.length === 0 ? undefined : { nextTypes: [] };
  }
  const idle = String(Math.min(idleMs, LAST_IDLE_MS));
  await executor.query(lockKeyToMark(names), [consumer, source, partitionKey, idle]);
  const { rows } = await executor.query(markKeyedProcessed(names), [rowId, lockToken]);
  const [done] = rows;
  if (done === undefined) return undefined;
  return { nextTypes: typeof done['next_type'] === 'string' ? [done['next_type']] : [] };
}

/** Writes failures, those of keyed messages under their keys' locks. */
export async function fail(
  database: InboxDatabase,
  names: Names,
  failures: readonly FailedHandling[],
  onFailedKey: OnFailedKey,
): Promise<InboxSettleResult> {
  return await settle(
    database,
    names,
    failures,
    (item) => item.message,
    async (executor, items) => {
      const { rows } = await executor.query(markFailed(names), [
        items.map(({ message }) => message.rowId),
        items.map(({ message }) => message.lockToken),
        items.map(({ reason }) => storable(reason)),
        items.map(({ retryInSeconds }) => retryInSeconds ?? null),
        onFailedKey === 'block',
      ]);
      return rows;
    },
  );
}

/** Gives messages back. */
export async function giveBack(
  database: InboxDatabase,
  names: Names,
  messages: readonly ClaimedInboxMessage[],
): Promise<InboxSettleResult> {
  return await settle(
    database,
    names,
    messages,
    (message) => message,
    async (executor, items) => {
      const { rows } = await executor.query(release(names), [
        items.map((message) => message.rowId),
        items.map((message) => message.lockToken),
      ]);
      return rows;
    },
  );
}

type Rows = readonly Readonly<Record<string, unknown>>[];

/** Unkeyed ones in one statement on autocommit; keyed ones in a short transaction. */
async function settle<T>(
  database: InboxDatabase,
  names: Names,
  items: readonly T[],
  messageOf: (item: T) => ClaimedInboxMessage,
  write: (executor: SqlExecutor, items: readonly T[]) => Promise<Rows>,
): Promise<InboxSettleResult> {
  const unkeyed = items.filter((item) => messageOf(item).partitionKey === null);
  const keyed = items.filter((item) => messageOf(item).partitionKey !== null);
  const changed: Rows[] = [];
  let nextTypes: readonly string[] = [];
  if (unkeyed.length > 0) changed.push(await write(database, unkeyed));
  if (keyed.length > 0) {
    const keys = keysOf(keyed.map(messageOf));
    const done = await changeUnderKeys(database, names, keys, (executor) => write(executor, keyed));
    changed.push(done.answer);
    nextTypes = done.nextTypes;
  }
  const rows = changed.flat();
  const settled = new Set(rows.map((row) => String(row['id'])));
  return {
    settled: [...settled],
    ended: rows.filter((row) => row['ended'] === true).map((row) => String(row['id'])),
    lost: items.map((item) => messageOf(item).rowId).filter((id) => !settled.has(id)),
    nextTypes,
  };
}
