import { storable } from '../../../message/text.ts';
import type { SqlExecutor } from '../../executor.ts';
import type {
  ClaimedInboxMessage,
  FailedHandling,
  InboxSettleResult,
  Transaction,
} from '../../inbox-store.ts';
import type { OnFailedKey } from '../../outbox-store.ts';
import { digestOf } from '../digest.ts';
import type { Names } from '../names.ts';
import { markFailed, markKeyedProcessed, markProcessed, release } from '../sql/inbox-settle.ts';
import { changeUnderKeys, type InboxDatabase } from './database.ts';
import { retried } from './retry.ts';
import { keysOf } from './rows.ts';

/** Marks a message in its handler's transaction, in one round trip. */
export async function mark(
  names: Names,
  transaction: Transaction<unknown>,
  message: ClaimedInboxMessage,
): Promise<{ readonly nextTypes: readonly string[] } | undefined> {
  const { executor } = transaction;
  const { consumer, source, partitionKey, rowId, lockToken } = message;
  if (partitionKey === null) {
    const { rows } = await executor.query(markProcessed(names), [rowId, lockToken]);
    return rows.length === 0 ? undefined : { nextTypes: [] };
  }
  const key = digestOf(consumer, source, partitionKey);
  const { rows } = await executor.query(markKeyedProcessed(names), [rowId, lockToken, key]);
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
      const given = items.map(({ message, reason, retryInSeconds }) => ({
        id: message.rowId,
        token: message.lockToken,
        reason: storable(reason),
        wait: retryInSeconds ?? null,
      }));
      return (await executor.query(markFailed(names), [JSON.stringify(given), onFailedKey === 'block'])).rows;
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
      const given = items.map(({ rowId, lockToken }) => ({ id: rowId, token: lockToken }));
      return (await executor.query(release(names), [JSON.stringify(given)])).rows;
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
  if (unkeyed.length > 0) changed.push(await retried(() => write(database, unkeyed)));
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
    ended: rows.filter((row) => row['ended'] === 1).map((row) => String(row['id'])),
    lost: items.map((item) => messageOf(item).rowId).filter((id) => !settled.has(id)),
    nextTypes,
  };
}
