import { type Claimed, type ClaimParts, nothing, type Room } from '../../inbox/claim.ts';
import { claimedFrom } from '../../inbox/rows.ts';
import type { ClaimRequest } from '../../inbox-store.ts';
import type { DriverRow } from '../../values.ts';
import { digestOf } from '../digest.ts';
import type { Names } from '../names.ts';
import { claimUnkeyed, endDoomedUnkeyed } from '../sql/inbox-claim.ts';
import { claimHeads, endDoomed, freeKeys, headVerdicts, leaseKeys } from '../sql/inbox-claim-keys.ts';
import { changeUnderKeys, type InboxDatabase } from './database.ts';
import { retried } from './retry.ts';
import { inOrder, type KeyLease } from './rows.ts';

/** What a claim works with. */
interface Claim {
  readonly database: InboxDatabase;
  readonly names: Names;
  readonly request: ClaimRequest;
  readonly lane: Buffer;
}

/** One claim on SQL Server. */
export function claiming(database: InboxDatabase, names: Names, request: ClaimRequest): ClaimParts {
  const context = { database, names, request, lane: digestOf(request.consumer, request.messageType) };
  return {
    unkeyed: (room) => unkeyed(context, room),
    heads: (room) => heads(context, room),
    // The statements count UTF-16.
    bytesOf: ({ payload }) => 2 * payload.length,
  };
}

async function unkeyed({ database, names, request, lane }: Claim, room: Room): Promise<Claimed> {
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
  return { ...nothing, ...claimedOf(rows.filter((row) => row['doomed'] !== 1)), ended };
}

async function heads({ database, names, request, lane }: Claim, room: Room): Promise<Claimed> {
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
  const claimed = { ...nothing, ...claimedOf(rows) };
  const taken = new Set(rows.map((row) => String(row['key'])));
  const left = keys.filter(({ key }) => !taken.has(key));
  if (left.length === 0) return claimed;
  return { ...claimed, ...(await giveUp({ database, names, request, lane }, left)) };
}

/** Gives back the keys whose heads were not claimed: as they are, or set right where their rows say something else. */
async function giveUp(
  { database, names, request, lane }: Claim,
  left: readonly KeyLease[],
): Promise<Pick<Claimed, 'ended' | 'nextTypes' | 'mended'>> {
  const maxRetries = request.maxRetries ?? null;
  const { rows } = await database.query(headVerdicts(names), [JSON.stringify(left), lane, maxRetries]);
  const leasesOf = (verdicts: readonly DriverRow[]): KeyLease[] =>
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

function claimedOf(rows: readonly DriverRow[]): Pick<Claimed, 'messages' | 'alone'> {
  return { messages: inOrder(rows).map(claimedFrom), alone: rows.some((row) => row['alone'] === 1) };
}
