import { setTimeout as sleep } from 'node:timers/promises';
import { Deadline } from '../../../delivery/deadline.ts';
import type { Changed, Refused } from '../../../operations/responses.ts';
import type { LaneLease, OutboxStore } from '../../outbox-store.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { discardOutbox, locateOutbox, releaseFollowers, requeueOutbox } from '../sql/operations-outbox.ts';
import { inTransaction, type OperationsSource, type Row, rowsOf, writing } from './session.ts';

/** Where operations get buckets' leases from. */
export type OutboxLeases = Pick<OutboxStore, 'lease' | 'release'>;

/** What decisions about messages need. */
export interface OutboxContext {
  readonly source: OperationsSource;
  readonly names: Names;
  readonly leases: OutboxLeases;
}

/** Outcomes of a decision about some rows. */
export interface Fates {
  readonly changed: readonly Changed[];
  readonly refused: readonly Refused[];
}

/** A command's lease on a bucket: long enough for one transaction, short enough if the command is killed. */
const leaseMs = 15_000;
/** A relay gives its buckets back every few seconds for a few milliseconds: look often. */
const pollMs = 25;

interface Located {
  readonly id: string;
  readonly destination: string;
  readonly bucket: number;
  readonly state: number;
  readonly running: boolean;
}

/** Rows of the outbox among the ids; what isn't here may be an inbox row. */
export async function locate(
  { source, names }: OutboxContext,
  ids: readonly string[],
): Promise<readonly Located[]> {
  return rowsOf(await source.query(locateOutbox(names), [ids])).map((row: Row) => ({
    id: row.text('id'),
    destination: row.text('destination'),
    bucket: row.number('bucket'),
    state: row.number('state'),
    running: row.flag('running'),
  }));
}

/** Failed → Pending, under the lease of each row's bucket. */
export async function requeueOutboxRows(
  context: OutboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean; readonly waitSeconds: number },
): Promise<Fates> {
  return await decide(context, ids, options, requeueRefusal, async (client, lease, some) => {
    const values = [lease.destination, lease.token, some];
    return rowsOf(await client.query(requeueOutbox(context.names), values)).map((row) => row.text('id'));
  });
}

/** Unfinished or Failed → Discarded, under the lease of each row's bucket; what was held behind goes on. */
export async function discardOutboxRows(
  context: OutboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean; readonly waitSeconds: number; readonly lastError: string },
): Promise<Fates> {
  return await decide(context, ids, options, discardRefusal, async (client, lease, some) => {
    const values = [lease.destination, lease.token, some, options.lastError];
    const rows = rowsOf(await client.query(discardOutbox(context.names), values));
    const keys = [...new Set(rows.flatMap((row) => row.textOrNull('partition_key') ?? []))];
    if (keys.length > 0) {
      await client.query(releaseFollowers(context.names), [lease.destination, lease.token, keys]);
    }
    return rows.map((row) => row.text('id'));
  });
}

/**
 * Runs the work on the buckets given, as their leases can be had, for so long. Every write to an unfinished row holds
 * its bucket's lease: a relay's settle on the way can then not undo it.
 * @returns buckets that were busy to the end
 */
export async function withBuckets(
  leases: OutboxLeases,
  request: {
    readonly destination: string;
    readonly buckets: readonly number[];
    readonly waitSeconds: number;
  },
  work: (lease: LaneLease) => Promise<void>,
): Promise<ReadonlySet<number>> {
  const missing = new Set(request.buckets);
  const until = Deadline.in(request.waitSeconds * 1000);
  for (;;) {
    const { destination } = request;
    const lease = await leases.lease({ destination, limit: missing.size, leaseMs, buckets: [...missing] });
    if (lease !== undefined) {
      try {
        await work(lease);
      } finally {
        await leases.release(lease);
      }
      for (const bucket of lease.buckets) missing.delete(bucket);
    }
    if (missing.size === 0 || until.remainingMs() <= 0) return missing;
    if (lease === undefined) await sleep(pollMs);
  }
}

async function decide(
  context: OutboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean; readonly waitSeconds: number },
  refusal: (row: Located) => string | undefined,
  change: (client: Database, lease: LaneLease, ids: readonly string[]) => Promise<readonly string[]>,
): Promise<Fates> {
  const rows = await locate(context, ids);
  const refused = new Map(rows.flatMap((row) => pair(row.id, refusal(row))));
  const wanted = rows.filter((row) => !refused.has(row.id));
  if (options.dryRun) return fates(wanted, refused);
  const changed = new Set<string>();
  for (const destination of new Set(wanted.map((row) => row.destination))) {
    const lane = wanted.filter((row) => row.destination === destination);
    const buckets = [...new Set(lane.map((row) => row.bucket))];
    const { waitSeconds } = options;
    const busy = await withBuckets(context.leases, { destination, buckets, waitSeconds }, async (lease) => {
      const some = lane.filter((row) => lease.buckets.includes(row.bucket)).map((row) => row.id);
      const done = await inTransaction(context.source, writing, (client) => change(client, lease, some));
      for (const id of done) changed.add(id);
    });
    for (const row of lane.filter(({ bucket }) => busy.has(bucket))) {
      refused.set(
        row.id,
        `a relay held its bucket (${row.bucket} of ${destination}) for ${waitSeconds} s; try again, or pause the destination first`,
      );
    }
  }
  await explain(context, wanted, changed, refused, refusal);
  return fates(
    wanted.filter((row) => changed.has(row.id)),
    refused,
  );
}

/** Says of rows that were in order when they were looked at, and not when they were to be changed, what they are now. */
async function explain(
  context: OutboxContext,
  wanted: readonly Located[],
  changed: ReadonlySet<string>,
  refused: Map<string, string>,
  refusal: (row: Located) => string | undefined,
): Promise<void> {
  const left = wanted.filter((row) => !changed.has(row.id) && !refused.has(row.id)).map((row) => row.id);
  if (left.length === 0) return;
  const now = new Map((await locate(context, left)).map((row) => [row.id, row]));
  for (const id of left) {
    const row = now.get(id);
    refused.set(id, (row && refusal(row)) ?? 'it changed meanwhile; look at it and try again');
  }
}

function fates(rows: readonly { readonly id: string }[], refused: ReadonlyMap<string, string>): Fates {
  return {
    changed: rows.map(({ id }) => ({ id, box: 'outbox' })),
    refused: [...refused].map(([id, reason]) => ({ id, reason })),
  };
}

function pair(id: string, reason: string | undefined): readonly (readonly [string, string])[] {
  return reason === undefined ? [] : [[id, reason]];
}

function requeueRefusal({ state }: Located): string | undefined {
  if (state === 3) return undefined;
  if (state === 4)
    return 'it is Discarded, which is final; add the message anew where it is wanted after all';
  return state === 2 ? 'it is published already' : 'it is not Failed: it will be published without this';
}

function discardRefusal({ state, running }: Located): string | undefined {
  if (state === 4) return 'it is Discarded already';
  if (state === 2) return 'it is published already';
  return running ? 'another program has it in hand, until its lease runs out' : undefined;
}
