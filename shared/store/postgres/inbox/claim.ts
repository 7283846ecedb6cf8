import { type Claimed, type ClaimParts, nothing, type Room } from '../../inbox/claim.ts';
import { claimedFrom } from '../../inbox/rows.ts';
import type { ClaimRequest } from '../../inbox-store.ts';
import type { DriverRow } from '../../values.ts';
import type { Names } from '../names.ts';
import { claimUnkeyed } from '../sql/inbox-claim.ts';
import { claimHeads, endDoomed, leaseKeys } from '../sql/inbox-claim-keys.ts';
import { changeUnderKeys, type InboxDatabase } from './database.ts';
import type { KeyLease } from './rows.ts';

/** What a claim works with. */
interface Claim {
  readonly database: InboxDatabase;
  readonly names: Names;
  readonly request: ClaimRequest;
}

/** One claim on PostgreSQL. */
export function claiming(database: InboxDatabase, names: Names, request: ClaimRequest): ClaimParts {
  const context = { database, names, request };
  return {
    unkeyed: (room) => unkeyed(context, room),
    heads: (room) => heads(context, room),
    bytesOf: ({ payload }) => Buffer.byteLength(payload),
  };
}

async function unkeyed({ database, names, request }: Claim, room: Room): Promise<Claimed> {
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
  return { ...nothing, ...claimedOf(rows), ended: Number(rows[0]?.['ended'] ?? 0) };
}

async function heads(context: Claim, room: Room): Promise<Claimed> {
  const { database, names, request } = context;
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
  const claimed = { ...nothing, ...claimedOf(rows) };
  const amiss = rows.filter((row) => row['verdict'] === 'other' || row['verdict'] === 'doomed');
  return amiss.length === 0 ? claimed : { ...claimed, ...(await mend(context, amiss)), mended: true };
}

/** Ends what lost its last lease, names the true heads of the keys, and gives the keys back. */
async function mend(
  { database, names, request }: Claim,
  amiss: readonly DriverRow[],
): Promise<Pick<Claimed, 'ended' | 'nextTypes'>> {
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

function claimedOf(rows: readonly DriverRow[]): Pick<Claimed, 'messages' | 'alone'> {
  const claimed = rows.filter((row) => row['id'] !== null);
  return { messages: claimed.map(claimedFrom), alone: claimed.some((row) => row['alone'] === true) };
}
