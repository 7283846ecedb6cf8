import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { lockKeysOfRows, refreshKeys } from '../sql/inbox-keys.ts';
import { discardInbox, locateInbox, requeueInbox } from '../sql/operations-inbox.ts';
import type { Fates } from './outbox-fate.ts';
import { inTransaction, type OperationsSource, rowsOf, writing } from './session.ts';

/** What a decision about inbox rows needs. */
export interface InboxContext {
  readonly source: OperationsSource;
  readonly names: Names;
}

/** Rows per transaction: the keys of a batch are locked together, and handlers wait for that. */
const batchRows = 50;

interface Located {
  readonly id: string;
  readonly state: number;
  readonly running: boolean;
}

type Refusal = (row: Located) => string | undefined;

/** Failed → Pending; a key that was blocked goes on with it. One that could not be read is read again by ingest. */
export async function requeueInboxRows(
  context: InboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean },
): Promise<Fates> {
  return await decide(context, ids, options, requeueRefusal, async (client, some) => {
    const rows = rowsOf(await client.query(requeueInbox(context.names), [some]));
    return rows.map((row) => row.text('id'));
  });
}

/** Unfinished or Failed → Discarded, unless a handler has it; its key goes on without it. */
export async function discardInboxRows(
  context: InboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean; readonly lastError: string },
): Promise<Fates> {
  return await decide(context, ids, options, discardRefusal, async (client, some) => {
    const rows = rowsOf(await client.query(discardInbox(context.names), [some, options.lastError]));
    return rows.map((row) => row.text('id'));
  });
}

/** Rows of the inbox among the ids. */
async function locateInboxRows(
  { source, names }: InboxContext,
  ids: readonly string[],
): Promise<readonly Located[]> {
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

async function decide(
  context: InboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean },
  refusal: Refusal,
  change: (client: Database, ids: readonly string[]) => Promise<readonly string[]>,
): Promise<Fates> {
  const rows = await locateInboxRows(context, ids);
  const refused = new Map<string, string>();
  const wanted: string[] = [];
  for (const row of rows) {
    const reason = refusal(row);
    if (reason === undefined) wanted.push(row.id);
    else refused.set(row.id, reason);
  }
  const changed = new Set(options.dryRun ? wanted : []);
  if (!options.dryRun) {
    const apply = async (some: readonly string[]): Promise<void> => {
      try {
        for (const id of await withKeys(context, some, (client) => change(client, some))) changed.add(id);
      } catch (error) {
        if (!isLockTrouble(error)) throw error;
        // One row in somebody's hands must not hold up the others.
        if (some.length > 1) for (const id of some) await apply([id]);
        else refused.set(some[0] ?? '', 'a handler is just ending it or its key; try again');
      }
    };
    for (let at = 0; at < wanted.length; at += batchRows) await apply(wanted.slice(at, at + batchRows));
  }
  const left = wanted.filter((id) => !changed.has(id) && !refused.has(id));
  const now = new Map(
    (left.length > 0 ? await locateInboxRows(context, left) : []).map((row) => [row.id, row]),
  );
  for (const id of left) {
    const row = now.get(id);
    refused.set(id, (row && refusal(row)) ?? 'it changed meanwhile; look at it and try again');
  }
  return {
    changed: wanted.filter((id) => changed.has(id)).map((id) => ({ id, box: 'inbox' })),
    refused: [...refused].map(([id, reason]) => ({ id, reason })),
  };
}

function requeueRefusal({ state }: Located): string | undefined {
  if (state === 3) return undefined;
  if (state === 4) return 'it is Discarded, which is final; have it sent anew where it is wanted after all';
  return state === 2 ? 'it is handled already' : 'it is not Failed: it will be handled without this';
}

function discardRefusal({ state, running }: Located): string | undefined {
  if (state === 4) return 'it is Discarded already';
  if (state === 2) return 'it is handled already';
  return running ? 'a handler has it, until it ends or its lease runs out; try again then' : undefined;
}
