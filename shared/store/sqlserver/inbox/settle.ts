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
import { digestOf } from '../digest.ts';
import type { Names } from '../names.ts';
import { markFailed, markKeyedProcessed, markProcessed, release } from '../sql/inbox-settle.ts';
import { changeUnderKeys, type InboxDatabase } from './database.ts';
import { retried } from './retry.ts';
import { keysOf } from './rows.ts';

/** Marks a message in its handler's transaction, in one round trip. */
export async function mark(
  names: Names,
  { executor }: Transaction<unknown>,
  { consumer, source, partitionKey, rowId, lockToken }: ClaimedInboxMessage,
): Promise<Marked> {
  const row = [rowId, lockToken];
  if (partitionKey === null) return marked((await executor.query(markProcessed(names), row)).rows);
  const key = digestOf(consumer, source, partitionKey);
  return marked((await executor.query(markKeyedProcessed(names), [...row, key])).rows);
}

/** Writes failures, those of keyed messages under their keys' locks. */
export async function fail(
  database: InboxDatabase,
  names: Names,
  failures: readonly FailedHandling[],
  onFailedKey: OnFailedKey,
): Promise<InboxSettleResult> {
  return await settle(database, names, failures, async (executor, items) => {
    const given = items.map(({ message, reason, retryInSeconds }) => ({
      id: message.rowId,
      token: message.lockToken,
      reason: storable(reason),
      wait: retryInSeconds ?? null,
    }));
    return (await executor.query(markFailed(names), [JSON.stringify(given), onFailedKey === 'block'])).rows;
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
    const given = items.map(({ message }) => ({ id: message.rowId, token: message.lockToken }));
    return (await executor.query(release(names), [JSON.stringify(given)])).rows;
  });
}

async function settle<Item extends InHand>(
  database: InboxDatabase,
  names: Names,
  items: readonly Item[],
  write: (executor: SqlExecutor, items: readonly Item[]) => Promise<readonly DriverRow[]>,
): Promise<InboxSettleResult> {
  return await settleInbox(items, {
    alone: (unkeyed) => retried(() => write(database, unkeyed)),
    underKeys: (keyed) => {
      const keys = keysOf(keyed.map(({ message }) => message));
      return changeUnderKeys(database, names, keys, (executor) => write(executor, keyed));
    },
  });
}
