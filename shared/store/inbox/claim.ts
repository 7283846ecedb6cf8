import type { ClaimedInboxMessage, ClaimRequest, ClaimResult } from '../inbox-store.ts';

/** What one look for due messages brought. */
export interface Claimed extends ClaimResult {
  /** Keys were set right, so that another look may find more. */
  readonly mended: boolean;
}

/** What is still free in a claim that has messages in hand already. */
export interface Room {
  readonly limit: number;
  readonly bytes: number;
  /** Others are in hand: a message that may kill the function is left for a claim of its own. */
  readonly company: boolean;
}

/** What an engine brings to one claim. */
export interface ClaimParts {
  /** Due messages without a key; at best one round trip. */
  unkeyed(room: Room): Promise<Claimed>;
  /** Heads of due keys: leases keys, then claims their heads. Sets keys right that name another head, and gives them back. */
  heads(room: Room): Promise<Claimed>;
  /** A payload's size as the statements count it. */
  bytesOf(message: ClaimedInboxMessage): number;
}

/** A look that found nothing. */
export const nothing: Claimed = { messages: [], alone: false, ended: 0, nextTypes: [], mended: false };

/**
 * Claims unkeyed messages and heads of keys. Whichever goes first may take the whole batch, so the caller alternates.
 */
export async function claim(
  parts: ClaimParts,
  { limit, maxBytes }: ClaimRequest,
  keyedFirst: boolean,
): Promise<ClaimResult> {
  let all = nothing;
  for (const kind of keyedFirst ? (['heads', 'unkeyed'] as const) : (['unkeyed', 'heads'] as const)) {
    const room = {
      limit: limit - all.messages.length,
      bytes: maxBytes - all.messages.reduce((sum, message) => sum + parts.bytesOf(message), 0),
      company: all.messages.length > 0,
    };
    if (all.alone || room.limit <= 0 || room.bytes <= 0) break;
    const found = await parts[kind](room);
    all = together(all, found);
    // A second look, where keys were set right in the first: their heads may be of this very type.
    if (kind === 'heads' && found.mended && found.messages.length === 0) {
      all = together(all, await parts.heads(room));
    }
  }
  const { messages, alone, ended } = all;
  return { messages, alone, ended, nextTypes: [...new Set(all.nextTypes)] };
}

function together(a: Claimed, b: Claimed): Claimed {
  return {
    messages: [...a.messages, ...b.messages],
    alone: a.alone || b.alone,
    ended: a.ended + b.ended,
    nextTypes: [...a.nextTypes, ...b.nextTypes],
    mended: a.mended || b.mended,
  };
}
