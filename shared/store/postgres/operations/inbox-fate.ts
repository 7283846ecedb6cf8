import type { Fates } from '../../operations/fates.ts';
import {
  decideInbox,
  discardInboxRefusal,
  type InboxDecisions,
  type LocatedInbox,
  requeueInboxRefusal,
} from '../../operations/inbox-fates.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { lockKeysOfRows, refreshKeys } from '../sql/inbox-keys.ts';
import { discardInbox, locateInbox, requeueInbox } from '../sql/operations-inbox.ts';
import { inTransaction, type OperationsSource, rowsOf, writing } from './session.ts';

/** What a decision about inbox rows needs. */
export interface InboxContext {
  readonly source: OperationsSource;
  readonly names: Names;
}

/** Failed → Pending; a key that was blocked goes on with it. One that could not be read is read again by ingest. */
export async function requeueInboxRows(
  context: InboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean },
): Promise<Fates> {
  return await decideInbox(
    decisions(context, async (client, some) => {
      const rows = rowsOf(await client.query(requeueInbox(context.names), [some]));
      return rows.map((row) => row.text('id'));
    }),
    ids,
    options,
    requeueInboxRefusal,
  );
}

/** Unfinished or Failed → Discarded, unless a handler has it; its key goes on without it. */
export async function discardInboxRows(
  context: InboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean; readonly lastError: string },
): Promise<Fates> {
  return await decideInbox(
    decisions(context, async (client, some) => {
      const rows = rowsOf(await client.query(discardInbox(context.names), [some, options.lastError]));
      return rows.map((row) => row.text('id'));
    }),
    ids,
    options,
    discardInboxRefusal,
  );
}

function decisions(
  context: InboxContext,
  change: (client: Database, ids: readonly string[]) => Promise<readonly string[]>,
): InboxDecisions {
  return {
    locate: (ids) => locateInboxRows(context, ids),
    change: (ids) => withKeys(context, ids, (client) => change(client, ids)),
    isLockTrouble,
  };
}

async function locateInboxRows(
  { source, names }: InboxContext,
  ids: readonly string[],
): Promise<readonly LocatedInbox[]> {
  return rowsOf(await source.query(locateInbox(names), [ids])).map((row) => ({
    id: row.text('id'),
    state: row.number('state'),
    running: row.flag('running'),
  }));
}

/** The rules of `inbox-keys.ts`: lock the keys, change the rows, name the heads anew; three statements, one transaction. */
export async function withKeys<T>(
  { source, names }: InboxContext,
  ids: readonly string[],
  change: (client: Database) => Promise<T>,
): Promise<T> {
  return await inTransaction(source, writing, async (client) => {
    const keys = await lockKeys(client, names, ids);
    const answer = await change(client);
    await refresh(client, names, keys);
    return answer;
  });
}

/** Locks the keys of the rows, making those that have no row yet. */
async function lockKeys(client: Database, names: Names, ids: readonly string[]): Promise<Keys> {
  const rows = rowsOf(await client.query(lockKeysOfRows(names), [ids]));
  return {
    consumers: rows.map((row) => row.text('consumer')),
    sources: rows.map((row) => row.text('source')),
    keys: rows.map((row) => row.text('partition_key')),
  };
}

/** Names the heads of locked keys anew. A lease that runs on one goes on. */
export async function refresh(client: Database, names: Names, keys: Keys): Promise<void> {
  if (keys.keys.length === 0) return;
  const noLease = keys.keys.map(() => null);
  await client.query(refreshKeys(names), [keys.consumers, keys.sources, keys.keys, noLease]);
}

/** Keys, as three arrays of one length. */
export interface Keys {
  readonly consumers: readonly string[];
  readonly sources: readonly string[];
  readonly keys: readonly string[];
}

/** Somebody holds a lock that a short wait did not free, or a deadlock's victim. */
export function isLockTrouble(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return code === '55P03' || code === '40P01';
}
