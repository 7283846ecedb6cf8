import type { ClaimedInboxMessage, ClaimRequest, ClaimResult } from '../../inbox-store.ts';
import { digestOf } from '../digest.ts';
import type { Names } from '../names.ts';
import { claimUnkeyed, endDoomedUnkeyed } from '../sql/inbox-claim.ts';
import { claimHeads, endDoomed, freeKeys, headVerdicts, leaseKeys } from '../sql/inbox-claim-keys.ts';
import { changeUnderKeys, type InboxDatabase } from './database.ts';
import { retried } from './retry.ts';
import { claimedFrom, inOrder, type KeyLease, type Row } from './rows.ts';

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

/** What a claim works with. */
interface Claim {
  readonly database: InboxDatabase;
  readonly names: Names;
  readonly request: ClaimRequest;
  readonly lane: Buffer;
}

const nothing: Part = { messages: [], alone: false, ended: 0, nextTypes: [], mended: false };

/** Claims unkeyed messages and heads of keys. Whichever goes first may take the whole batch, so the caller alternates. */
export async function claim(
  database: InboxDatabase,
  names: Names,
  request: ClaimRequest,
  keyedFirst: boolean,
): Promise<ClaimResult> {
  const context = { database, names, request, lane: digestOf(request.consumer, request.messageType) };
  const takers = keyedFirst ? [heads, unkeyed] : [unkeyed, heads];
  let all: Part = nothing;
  for (const take of takers) {
    // As the statements count: UTF-16.
    const bytes = all.messages.reduce((sum, message) => sum + 2 * message.payload.length, 0);
    const room = {
      limit: request.limit - all.messages.length,
      bytes: request.maxBytes - bytes,
      company: all.messages.length > 0,
    };
    if (all.alone || room.limit <= 0 || room.bytes <= 0) break;
    all = together(all, await take(context, room));
  }
  const { messages, alone, ended } = all;
  return { messages, alone, ended, nextTypes: [...new Set(all.nextTypes)] };
}

async function unkeyed({ database, names, request, lane }: Claim, room: Room): Promise<Part> {
  const { leaseMs, maxRetries = null } = request;
  const values = [lane, room.limit, room.bytes, leaseMs, maxRetries, room.company, ...only(request)];
  const statement = claimUnkeyed(names, { oneSource: request.source !== undefined });
  const { rows } = await retried(() => database.query(statement, values));
  const doomed = rows.filter((row) => row['doomed'] === 1);
  let ended = 0;
  if (doomed.length > 0) {
    const leases = doomed.map((row) => ({ id: row['id'], token: row['lock_token'] }));
    const answer = await retried(() => database.query(endDoomedUnkeyed(names), [JSON.stringify(leases)]));
    ended = answer.rows.length;
  }
  return { ...claimedOf(rows.filter((row) => row['doomed'] !== 1)), ended, nextTypes: [], mended: false };
}

/** A second look, where keys were set right in the first: their heads may be of this very type. */
async function heads(context: Claim, room: Room): Promise<Part> {
  const first = await headsOnce(context, room);
  if (!first.mended || first.messages.length > 0) return first;
  return together(first, await headsOnce(context, room));
}

async function headsOnce({ database, names, request, lane }: Claim, room: Room): Promise<Part> {
  const statement = leaseKeys(names, { oneSource: request.source !== undefined });
  const wanted = [lane, room.limit, request.leaseMs, ...only(request)];
  const leased = await retried(() => database.query(statement, wanted));
  if (leased.rows.length === 0) return nothing;
  const keys = leased.rows.map((row): KeyLease => ({ key: String(row['key']), token: String(row['token']) }));
  const maxRetries = request.maxRetries ?? null;
  const { rows } = await retried(() =>
    database.query(claimHeads(names), [
      JSON.stringify(keys),
      lane,
      room.bytes,
      maxRetries,
      room.company,
      room.limit,
    ]),
  );
  const part = claimedOf(rows);
  const taken = new Set(rows.map((row) => String(row['key'])));
  const left = keys.filter(({ key }) => !taken.has(key));
  if (left.length === 0) return { ...part, ended: 0, nextTypes: [], mended: false };
  return { ...part, ...(await giveUp({ database, names, request, lane }, left)) };
}

/** Gives back the keys whose heads were not claimed: as they are, or set right where their rows say something else. */
async function giveUp(
  { database, names, request, lane }: Claim,
  left: readonly KeyLease[],
): Promise<Pick<Part, 'ended' | 'nextTypes' | 'mended'>> {
  const maxRetries = request.maxRetries ?? null;
  const { rows } = await database.query(headVerdicts(names), [JSON.stringify(left), lane, maxRetries]);
  const leasesOf = (verdicts: readonly Row[]): KeyLease[] =>
    verdicts.map((row) => ({ key: String(row['key']), token: String(row['token']) }));
  const free = rows.filter((row) => row['verdict'] === 'free');
  if (free.length > 0) {
    await retried(() => database.query(freeKeys(names), [JSON.stringify(leasesOf(free))]));
  }
  const amiss = rows.filter((row) => row['verdict'] !== 'free');
  if (amiss.length === 0) return { ended: 0, nextTypes: [], mended: false };
  const doomed = amiss.filter((row) => row['verdict'] === 'doomed').map((row) => row['head_id']);
  const { answer, nextTypes } = await changeUnderKeys(database, names, leasesOf(amiss), async (executor) => {
    if (doomed.length === 0) return 0;
    const ended = await executor.query(endDoomed(names), [
      JSON.stringify(doomed),
      request.onFailedKey === 'block',
      maxRetries,
    ]);
    return ended.rows.length;
  });
  return { ended: answer, nextTypes: nextTypes.filter((type) => type !== request.messageType), mended: true };
}

/** The source as the last value, where one is wanted: the statements have no place for it otherwise. */
function only({ source }: ClaimRequest): readonly string[] {
  return source === undefined ? [] : [source];
}

function claimedOf(rows: readonly Row[]): { messages: readonly ClaimedInboxMessage[]; alone: boolean } {
  return { messages: inOrder(rows).map(claimedFrom), alone: rows.some((row) => row['alone'] === 1) };
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
