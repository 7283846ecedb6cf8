import type { InboxChanges } from '../../operations/inbox-fates.ts';
import { type Row, rowsOf } from '../../operations/rows.ts';
import { sqlState } from '../connection-errors.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { lockKeysOfRows, refreshKeys } from '../sql/inbox-keys.ts';
import { discardInbox, locateInbox, requeueInbox } from '../sql/operations-inbox.ts';
import { inTransaction, type OperationsSource, writing } from './session.ts';

/** What a decision about inbox rows needs. */
export interface InboxContext {
  readonly source: OperationsSource;
  readonly names: Names;
}

/** What decisions do to rows of the inbox, on PostgreSQL. */
export function inboxChanges(context: InboxContext): InboxChanges {
  const { source, names } = context;
  return {
    locate: async (ids) => rowsOf(await source.query(locateInbox(names), [ids])),

    requeue: (ids) =>
      withKeys(context, ids, async (client) => rowsOf(await client.query(requeueInbox(names), [ids]))),

    discard: (ids, lastError) =>
      withKeys(context, ids, async (client) =>
        rowsOf(await client.query(discardInbox(names), [ids, lastError])),
      ),

    isLockTrouble,
  };
}

/** The rules of `inbox-keys.ts`: lock the keys, change the rows, name the heads anew; three statements, one transaction. */
export async function withKeys<T>(
  { source, names }: InboxContext,
  ids: readonly string[],
  change: (client: Database) => Promise<T>,
): Promise<T> {
  return await inTransaction(source, writing, async (client) => {
    // Makes those that have no row yet.
    const keys = keysIn(rowsOf(await client.query(lockKeysOfRows(names), [ids])));
    const answer = await change(client);
    await refresh(client, names, keys);
    return answer;
  });
}

/** Names the heads of locked keys anew. A lease that runs on one goes on. */
export async function refresh(client: Database, names: Names, keys: Keys): Promise<void> {
  const [consumers] = keys;
  if (consumers.length > 0) await client.query(refreshKeys(names), [...keys, consumers.map(() => null)]);
}

/** Consumers, sources and partition keys: three arrays of one length, as statements take them. */
export type Keys = readonly [readonly string[], readonly string[], readonly string[]];

/** The keys that rows name. */
export function keysIn(rows: readonly Row[]): Keys {
  return [
    rows.map((row) => row.text('consumer')),
    rows.map((row) => row.text('source')),
    rows.map((row) => row.text('partition_key')),
  ];
}

/** Somebody holds a lock that a short wait did not free, or a deadlock's victim. */
export function isLockTrouble(error: unknown): boolean {
  const state = sqlState(error);
  return state === '55P03' || state === '40P01';
}
