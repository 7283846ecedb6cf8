import type { ClaimedInboxMessage, ClaimRequest, ClaimResult } from '../../inbox-store.ts';
import type { Names } from '../names.ts';
import { claimUnkeyed } from '../sql/inbox-claim.ts';
import { claimHeads, endDoomed, leaseKeys } from '../sql/inbox-claim-keys.ts';
import { changeUnderKeys, type InboxDatabase } from './database.ts';
import { claimedFrom, type KeyLease, type Row } from './rows.ts';

/** What one part of a claim brought, before the two parts are put together. */
interface Part {
  readonly messages: readonly ClaimedInboxMessage[];
  readonly alone: boolean;
  readonly ended: number;
  readonly nextTypes: readonly string[];
  /** Keys were set right, so that another look may find more. */
  readonly mended: boolean;
}

/** What is still free in a claim that has messages in hand already. */
interface Room {
  readonly limit: number;
  readonly bytes: number;
  /** Others are in hand: a message that may kill the function is left for a claim of its own. */
  readonly company: boolean;
}

const nothing: Part = { messages: [], alone: false, ended: 0, nextTypes: [], mended: false };

/**
 * Claims unkeyed messages and heads of keys. Whichever goes first may take the whole batch, so the caller alternates.
 */
export async function claim(
  database: InboxDatabase,
  names: Names,
  request: ClaimRequest,
  keyedFirst: boolean,
): Promise<ClaimResult> {
  const takers = keyedFirst ? [heads, unkeyed] : [unkeyed, heads];
  let all: Part = nothing;
  for (const take of takers) {
    const bytes = all.messages.reduce((sum, message) => sum + Buffer.byteLength(message.payload), 0);
    const room = {
      limit: request.limit - all.messages.length,
      bytes: request.maxBytes - bytes,
      company: all.messages.length > 0,
    };
    if (all.alone || room.limit <= 0 || room.bytes <= 0) break;
    all = together(all, await take(database, names, request, room));
  }
  const { messages, alone, ended } = all;
  return { messages, alone, ended, nextTypes: [...new Set(all.nextTypes)] };
}

async function unkeyed(
  database: InboxDatabase,
  names: Names,
  request: ClaimRequest,
  room: Room,
): Promise<Part> {
  const { rows } = await database.query(claimUnkeyed(names, { oneSource: request.source !== undefined }), [
    request.consumer,
    request.messageType,
    room.limit,
    room.bytes,
    request.leaseMs,
    request.maxRetries ?? null,
    room.company,
    ...only(request),
  ]);
  return { ...claimedOf(rows), ended: Number(rows[0]?.['ended'] ?? 0), nextTypes: [], mended: false };
}

/** A second look, where keys were set right in the first: their heads may be of this very type. */
async function heads(
  database: InboxDatabase,
  names: Names,
  request: ClaimRequest,
  room: Room,
): Promise<Part> {
  const first = await headsOnce(database, names, request, room);
  if (!first.mended || first.messages.length > 0) return first;
  return together(first, await headsOnce(database, names, request, room));
}

async function headsOnce(
  database: InboxDatabase,
  names: Names,
  request: ClaimRequest,
  room: Room,
): Promise<Part> {
  const { consumer, messageType, leaseMs } = request;
  const leased = await database.query(leaseKeys(names, { oneSource: request.source !== undefined }), [
    consumer,
    messageType,
    room.limit,
    leaseMs,
    ...only(request),
  ]);
  if (leased.rows.length === 0) return nothing;
  const { rows } = await database.query(claimHeads(names), [
    consumer,
    messageType,
    leased.rows.map((row) => row['source']),
    leased.rows.map((row) => row['partition_key']),
    leased.rows.map((row) => row['token']),
    room.bytes,
    request.maxRetries ?? null,
    room.company,
    room.limit,
  ]);
  const part = claimedOf(rows);
  const amiss = rows.filter((row) => row['verdict'] === 'other' || row['verdict'] === 'doomed');
  if (amiss.length === 0) return { ...part, ended: 0, nextTypes: [], mended: false };
  return { ...part, ...(await mend(database, names, request, amiss)), mended: true };
}

/** Ends what lost its last lease, names the true heads of the keys, and gives the keys back. */
async function mend(
  database: InboxDatabase,
  names: Names,
  request: ClaimRequest,
  amiss: readonly Row[],
): Promise<{ readonly ended: number; readonly nextTypes: readonly string[] }> {
  const keys = amiss.map(
    (row): KeyLease => ({
      consumer: request.consumer,
      source: String(row['key_source']),
      partitionKey: String(row['key']),
      token: String(row['token']),
    }),
  );
  const doomed = amiss.filter((row) => row['verdict'] === 'doomed').map((row) => row['head_id']);
  const { answer, nextTypes } = await changeUnderKeys(database, names, keys, async (executor) => {
    if (doomed.length === 0) return 0;
    const { rows } = await executor.query(endDoomed(names), [
      doomed,
      request.onFailedKey === 'block',
      request.maxRetries ?? null,
    ]);
    return rows.length;
  });
  return { ended: answer, nextTypes: nextTypes.filter((type) => type !== request.messageType) };
}

/** The source as the last value, where one is wanted: the statements have no place for it otherwise. */
function only({ source }: ClaimRequest): readonly string[] {
  return source === undefined ? [] : [source];
}

function claimedOf(rows: readonly Row[]): { messages: readonly ClaimedInboxMessage[]; alone: boolean } {
  const claimed = rows.filter((row) => row['id'] !== null);
  return { messages: claimed.map(claimedFrom), alone: claimed.some((row) => row['alone'] === true) };
}

function together(a: Part, b: Part): Part {
  return {
    messages: [...a.messages, ...b.messages],
    alone: a.alone || b.alone,
    ended: a.ended + b.ended,
    nextTypes: [...a.nextTypes, ...b.nextTypes],
    mended: a.mended || b.mended,
  };
}
