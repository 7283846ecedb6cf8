import { setTimeout as sleep } from 'node:timers/promises';
import { Deadline } from '../../delivery/deadline.ts';
import type { LaneLease, OutboxStore } from '../outbox-store.ts';
import type { Fates } from './fates.ts';
import type { Row } from './rows.ts';

/** Where operations get buckets' leases from. */
export type OutboxLeases = Pick<OutboxStore, 'lease' | 'release'>;

/** A row of the outbox, as a decision about it needs it. */
interface LocatedOutbox {
  readonly id: string;
  readonly destination: string;
  readonly bucket: number;
  readonly state: number;
  /** Another program has it in hand. */
  readonly running: boolean;
}

/** What an engine brings to decisions about rows of the outbox. */
export interface OutboxChanges {
  readonly leases: OutboxLeases;
  /** Rows of the outbox among the ids, with what `LocatedOutbox` has; what isn't here may be an inbox row. */
  locate(ids: readonly string[]): Promise<readonly Row[]>;
  /** Failed → Pending, of those that still are Failed, in one transaction under the lease; answers their ids. */
  requeue(lease: LaneLease, ids: readonly string[]): Promise<readonly Row[]>;
  /** Unfinished or Failed → Discarded, and what was held behind goes on; the same. */
  discard(lease: LaneLease, ids: readonly string[], lastError: string): Promise<readonly Row[]>;
}

/** One decision: the change, and why it can't be made of a row. */
export interface OutboxDecision {
  change(lease: LaneLease, ids: readonly string[]): Promise<readonly Row[]>;
  refusal(row: LocatedOutbox): string | undefined;
}

/** A command's lease on a bucket: long enough for one transaction, short enough if the command is killed. */
const leaseMs = 15_000;
/** A relay gives its buckets back every few seconds for a few milliseconds: look often. */
const pollMs = 25;

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

/** Decides about rows of the outbox, each under the lease of its bucket. */
export async function decideOutbox(
  box: OutboxChanges,
  { change, refusal }: OutboxDecision,
  ids: readonly string[],
  options: { readonly dryRun: boolean; readonly waitSeconds: number },
): Promise<Fates> {
  const rows = (await box.locate(ids)).map(located);
  const refused = new Map(rows.flatMap((row) => pair(row.id, refusal(row))));
  const wanted = rows.filter((row) => !refused.has(row.id));
  if (options.dryRun) return fates(wanted, refused);
  const changed = new Set<string>();
  for (const destination of new Set(wanted.map((row) => row.destination))) {
    const lane = wanted.filter((row) => row.destination === destination);
    const buckets = [...new Set(lane.map((row) => row.bucket))];
    const { waitSeconds } = options;
    const busy = await withBuckets(box.leases, { destination, buckets, waitSeconds }, async (lease) => {
      const some = lane.filter((row) => lease.buckets.includes(row.bucket)).map((row) => row.id);
      for (const row of await change(lease, some)) changed.add(row.text('id'));
    });
    for (const row of lane.filter(({ bucket }) => busy.has(bucket))) {
      refused.set(
        row.id,
        `a relay held its bucket (${row.bucket} of ${destination}) for ${waitSeconds} s; try again, or pause the destination first`,
      );
    }
  }
  // Rows that were in order when they were looked at, and not when they were to be changed: what are they now?
  const left = wanted.filter((row) => !changed.has(row.id) && !refused.has(row.id)).map((row) => row.id);
  const found = left.length > 0 ? (await box.locate(left)).map(located) : [];
  const now = new Map(found.map((row) => [row.id, row]));
  for (const id of left) {
    const row = now.get(id);
    refused.set(id, (row && refusal(row)) ?? 'it changed meanwhile; look at it and try again');
  }
  return fates(
    wanted.filter((row) => changed.has(row.id)),
    refused,
  );
}

function located(row: Row): LocatedOutbox {
  return {
    id: row.text('id'),
    destination: row.text('destination'),
    bucket: row.number('bucket'),
    state: row.number('state'),
    running: row.flag('running'),
  };
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

/** Why a row of the outbox can't be requeued. */
export function requeueRefusal({ state }: LocatedOutbox): string | undefined {
  if (state === 3) return undefined;
  if (state === 4)
    return 'it is Discarded, which is final; add the message anew where it is wanted after all';
  return state === 2 ? 'it is published already' : 'it is not Failed: it will be published without this';
}

/** Why a row of the outbox can't be discarded. */
export function discardRefusal({ state, running }: LocatedOutbox): string | undefined {
  if (state === 4) return 'it is Discarded already';
  if (state === 2) return 'it is published already';
  return running ? 'another program has it in hand, until its lease runs out' : undefined;
}
