import { storable } from '../../../message/text.ts';
import type { SqlExecutor } from '../../executor.ts';
import { type InHand, type Marked, marked, settleInbox } from '../../inbox/settle.ts';
import type {
  ClaimedInboxMessage,
  FailedHandling,
  InboxSettleResult,
  Transaction,
} from '../../inbox-store.ts';
import type { OnFailedKey } from '../../outbox-store.ts';
import type { DriverRow } from '../../values.ts';
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
  { executor }: Transaction<unknown>,
  { consumer, source, partitionKey, rowId, lockToken }: ClaimedInboxMessage,
  idleMs: number,
): Promise<Marked> {
  const row = [rowId, lockToken];
  if (partitionKey === null) return marked((await executor.query(markProcessed(names), row)).rows);
  const idle = String(Math.min(idleMs, LAST_IDLE_MS));
  await executor.query(lockKeyToMark(names), [consumer, source, partitionKey, idle]);
  return marked((await executor.query(markKeyedProcessed(names), row)).rows);
}

/** Writes failures, those of keyed messages under their keys' locks. */
export async function fail(
  database: InboxDatabase,
  names: Names,
  failures: readonly FailedHandling[],
  onFailedKey: OnFailedKey,
): Promise<InboxSettleResult> {
  return await settle(database, names, failures, async (executor, items) => {
    const { rows } = await executor.query(markFailed(names), [
      items.map(({ message }) => message.rowId),
      items.map(({ message }) => message.lockToken),
      items.map(({ reason }) => storable(reason)),
      items.map(({ retryInSeconds }) => retryInSeconds ?? null),
      onFailedKey === 'block',
    ]);
    return rows;
  });
}

/** Gives messages back. */
export async function giveBack(
  database: InboxDatabase,
  names: Names,
  messages: readonly ClaimedInboxMessage[],
): Promise<InboxSettleResult> {
  const inHand = messages.map((message) => ({ message }));
  return await settle(database, names, inHand, async (executor, items) => {
    const { rows } = await executor.query(release(names), [
      items.map(({ message }) => message.rowId),
      items.map(({ message }) => message.lockToken),
    ]);
    return rows;
  });
}

async function settle<Item extends InHand>(
  database: InboxDatabase,
  names: Names,
  items: readonly Item[],
  write: (executor: SqlExecutor, items: readonly Item[]) => Promise<readonly DriverRow[]>,
): Promise<InboxSettleResult> {
  return await settleInbox(items, {
    alone: (unkeyed) => write(database, unkeyed),
    underKeys: (keyed) => {
      const keys = keysOf(keyed.map(({ message }) => message));
      return changeUnderKeys(database, names, keys, (executor) => write(executor, keyed));
    },
  });
}
