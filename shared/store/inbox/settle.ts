import type { ClaimedInboxMessage, InboxSettleResult, TransactionLimits } from '../inbox-store.ts';
import { type DriverRow, isTrue } from '../values.ts';

/** Limits of the short transactions that change keyed rows. They wait for a key longer than a frozen holder may sit on it. */
export const settlingLimits: TransactionLimits = { idleMs: 5_000, lockMs: 12_000, statementMs: 15_000 };

/** A message in hand, beside what is to be written of it. */
export interface InHand {
  readonly message: ClaimedInboxMessage;
}

/** What was done under keys: the work's answer, and the types that are due next in these keys. */
export interface DoneUnderKeys<T> {
  readonly answer: T;
  readonly nextTypes: readonly string[];
}

/** How an engine writes outcomes; both answer rows with `id` and `ended` for what was changed. */
export interface InboxWrites<Item extends InHand> {
  /** Messages without a key: one statement on autocommit. */
  alone(items: readonly Item[]): Promise<readonly DriverRow[]>;
  /** Keyed messages: a short transaction that holds their keys. */
  underKeys(items: readonly Item[]): Promise<DoneUnderKeys<readonly DriverRow[]>>;
}

/** Writes outcomes, those of keyed messages under their keys' locks, and says what was lost. */
export async function settleInbox<Item extends InHand>(
  items: readonly Item[],
  writes: InboxWrites<Item>,
): Promise<InboxSettleResult> {
  const unkeyed = items.filter(({ message }) => message.partitionKey === null);
  const keyed = items.filter(({ message }) => message.partitionKey !== null);
  const alone = unkeyed.length > 0 ? await writes.alone(unkeyed) : [];
  const { answer, nextTypes } =
    keyed.length > 0 ? await writes.underKeys(keyed) : { answer: [], nextTypes: [] };
  const rows = [...alone, ...answer];
  const settled = new Set(rows.map((row) => String(row['id'])));
  return {
    settled: [...settled],
    ended: rows.filter((row) => isTrue(row['ended'])).map((row) => String(row['id'])),
    lost: items.map(({ message }) => message.rowId).filter((id) => !settled.has(id)),
    nextTypes,
  };
}

/** What became of a Processed mark: undefined where the lease was lost, else the type that is due next in the message's key, if any. */
export type Marked = { readonly nextTypes: readonly string[] } | undefined;

/** Reads what the mark's statement answered: no row where the lease was lost. */
export function marked([done]: readonly DriverRow[]): Marked {
  if (done === undefined) return undefined;
  return { nextTypes: typeof done['next_type'] === 'string' ? [done['next_type']] : [] };
}
