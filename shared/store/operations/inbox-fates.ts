import type { Fates } from './fates.ts';
import type { Row } from './rows.ts';

/** A row of the inbox, as a decision about it needs it. */
interface LocatedInbox {
  readonly id: string;
  readonly state: number;
  /** A handler has it in hand. */
  readonly running: boolean;
}

/** What an engine brings to decisions about rows of the inbox. */
export interface InboxChanges {
  /** Rows of the inbox among the ids, with what `LocatedInbox` has. */
  locate(ids: readonly string[]): Promise<readonly Row[]>;
  /**
   * Failed → Pending, of those that still are Failed, in one transaction that holds their keys; answers their ids. A key
   * that was blocked goes on with it. One that could not be read is read again by ingest.
   */
  requeue(ids: readonly string[]): Promise<readonly Row[]>;
  /** Unfinished or Failed → Discarded, unless a handler has it; its key goes on without it. The same. */
  discard(ids: readonly string[], lastError: string): Promise<readonly Row[]>;
  /** True where somebody holds a lock that a short wait did not free, or for a deadlock's victim. */
  isLockTrouble(error: unknown): boolean;
}

/** One decision: the change, and why it can't be made of a row. */
export interface InboxDecision {
  change(ids: readonly string[]): Promise<readonly Row[]>;
  refusal(row: LocatedInbox): string | undefined;
}

/** Rows per transaction: the keys of a batch are locked together, and handlers wait for that. */
const batchRows = 50;

/** Decides about rows of the inbox. */
export async function decideInbox(
  box: InboxChanges,
  { change, refusal }: InboxDecision,
  ids: readonly string[],
  options: { readonly dryRun: boolean },
): Promise<Fates> {
  const rows = (await box.locate(ids)).map(located);
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
        for (const row of await change(some)) changed.add(row.text('id'));
      } catch (error) {
        if (!box.isLockTrouble(error)) throw error;
        // One row in somebody's hands must not hold up the others.
        if (some.length > 1) for (const id of some) await apply([id]);
        else refused.set(some[0] ?? '', 'a handler is just ending it or its key; try again');
      }
    };
    for (let at = 0; at < wanted.length; at += batchRows) await apply(wanted.slice(at, at + batchRows));
  }
  const left = wanted.filter((id) => !changed.has(id) && !refused.has(id));
  const found = left.length > 0 ? (await box.locate(left)).map(located) : [];
  const now = new Map(found.map((row) => [row.id, row]));
  for (const id of left) {
    const row = now.get(id);
    refused.set(id, (row && refusal(row)) ?? 'it changed meanwhile; look at it and try again');
  }
  return {
    changed: wanted.filter((id) => changed.has(id)).map((id) => ({ id, box: 'inbox' })),
    refused: [...refused].map(([id, reason]) => ({ id, reason })),
  };
}

function located(row: Row): LocatedInbox {
  return { id: row.text('id'), state: row.number('state'), running: row.flag('running') };
}

/** Why a row of the inbox can't be requeued. */
export function requeueInboxRefusal({ state }: LocatedInbox): string | undefined {
  if (state === 3) return undefined;
  if (state === 4) return 'it is Discarded, which is final; have it sent anew where it is wanted after all';
  return state === 2 ? 'it is handled already' : 'it is not Failed: it will be handled without this';
}

/** Why a row of the inbox can't be discarded. */
export function discardInboxRefusal({ state, running }: LocatedInbox): string | undefined {
  if (state === 4) return 'it is Discarded already';
  if (state === 2) return 'it is handled already';
  return running ? 'a handler has it, until it ends or its lease runs out; try again then' : undefined;
}
