import { randomUUID } from 'node:crypto';
import type { OutboxRow } from '../../message/message.ts';
import type { DueLane, LaneLease, OutboxStore } from '../outbox-store.ts';
import { type DriverRow, numberOrUndefined } from '../values.ts';
import { Exclusive } from './exclusive.ts';
import { Quotas } from './quotas.ts';
import { OutboxReader, type OutboxReads } from './reader.ts';
import { type OutboxSettles, settling } from './settler.ts';

/** What is asked of a lane's leases. */
export type LeaseRequest = Parameters<OutboxStore['lease']>[0];

/** The breaker of a lane: each method is one statement, whose conditions decide. */
export type Breaker = Pick<
  OutboxStore,
  'openLane' | 'takeProbe' | 'probePassed' | 'probeFailed' | 'probeAbandoned'
>;

/** What an engine brings to a lane's leases and its figures: one round trip each. */
export interface OutboxLanes {
  /** Adds rows in a transaction of their own; answers the ids that were not there before. */
  insert(rows: readonly OutboxRow[]): Promise<ReadonlySet<string>>;
  /** Rows with `destination` and `state`. */
  dueLanes(): Promise<readonly DriverRow[]>;
  /** Takes what is free of the buckets asked for; answers their numbers. */
  lease(request: LeaseRequest, token: string): Promise<readonly number[]>;
  /** Makes the lane's lease rows; answers how many were not there. */
  makeLeases(destination: string): Promise<number>;
  release(lease: LaneLease): Promise<unknown>;
  /** Rows with `id`, `destination` and `bucket`. */
  bucketsOf(ids: readonly string[]): Promise<readonly DriverRow[]>;
  secondsToNextDue(): Promise<unknown>;
}

/** An engine's statements for the outbox, by what they are for. */
export interface OutboxEngine {
  readonly lanes: OutboxLanes;
  readonly reads: OutboxReads;
  readonly settles: OutboxSettles;
  readonly breaker: Breaker;
}

/** An outbox store on an engine's statements. `exclusive`: what must not overlap within this process, by the lease's token. */
export function outboxStore(engine: OutboxEngine, exclusive: Exclusive = new Exclusive()): OutboxStore {
  const { lanes, breaker } = engine;
  const quotas = new Quotas();
  const reader = new OutboxReader(engine.reads, { exclusive, quotas });
  return {
    async add(rows) {
      if (rows.length === 0) return [];
      const added = new Set([...(await lanes.insert(rows))].map((id) => id.toLowerCase()));
      // The second of two rows with one id was not added.
      return rows.map(({ id }) => ({ id, added: added.delete(id.toLowerCase()) }));
    },

    async dueLanes() {
      return (await lanes.dueLanes()).map((row) => ({
        destination: row['destination'] as string,
        state: row['state'] as DueLane['state'],
      }));
    },

    lease: (request) => lease(lanes, request),
    read: (held, request) => reader.read(held, request),
    settle: settling(engine.settles, exclusive),

    async release(held) {
      quotas.forget(held);
      await lanes.release(held);
    },

    openLane: (request) => breaker.openLane(request),
    takeProbe: (request) => breaker.takeProbe(request),
    probePassed: (probe) => breaker.probePassed(probe),
    probeFailed: (probe, request) => breaker.probeFailed(probe, request),
    probeAbandoned: (probe) => breaker.probeAbandoned(probe),

    async bucketsOf(ids) {
      return (await lanes.bucketsOf(ids)).map((row) => ({
        id: row['id'] as string,
        destination: row['destination'] as string,
        bucket: row['bucket'] as number,
      }));
    },

    secondsToNextDue: async () => numberOrUndefined(await lanes.secondsToNextDue()),
  };
}

async function lease(lanes: OutboxLanes, request: LeaseRequest): Promise<LaneLease | undefined> {
  const { destination } = request;
  const token = randomUUID();
  const buckets = await lanes.lease(request, token);
  if (buckets.length >= (request.buckets?.length ?? 1)) return { destination, token, buckets };
  // Perhaps the lane is new, and has no lease rows yet.
  const more = (await lanes.makeLeases(destination)) > 0 ? await lanes.lease(request, token) : [];
  const all = [...buckets, ...more];
  return all.length > 0 ? { destination, token, buckets: all } : undefined;
}
