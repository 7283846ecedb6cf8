import { setTimeout as sleep } from 'node:timers/promises';
import { backoffSeconds } from '../delivery/backoff.ts';
import { Deadline } from '../delivery/deadline.ts';
import { defaults } from '../delivery/defaults.ts';
import { inParallel } from '../delivery/parallel.ts';
import type { Publisher } from '../publish/publisher.ts';
import type { DueLane } from '../store/outbox-store.ts';
import { LaneSession, type Pace, ROOM } from './lane.ts';
import { tryLane } from './probe.ts';
import type { RelayContext } from './relay-options.ts';

/** What one run of the relay did. */
export interface RelayReport {
  /** Messages whose outcome was written. */
  readonly settled: number;
  /** True where due work was left because the time was up. */
  readonly workLeft: boolean;
  /** Seconds until the next message, probe or foreign lease comes due; undefined where nothing waits. */
  readonly nextDueSeconds: number | undefined;
}

/**
 * Carries due messages to their destinations, lane by lane, until nothing is due (`scheduled`) or the deadline comes
 * (`continuous`). Any number of these may run at once. Rejects where the database failed, after the other lanes have ended.
 */
export async function runRelay(context: RelayContext): Promise<RelayReport> {
  const { store, options, deadline, signal } = context;
  const relay = new Relay(context);
  let settled = 0;
  let workLeft = false;
  while (!signal.aborted) {
    const lanes = await store.dueLanes();
    const visits = await inParallel(lanes, options.parallelism, (lane) => relay.visit(lane));
    settled += visits.reduce((sum, visit) => sum + visit, 0);
    workLeft = lanes.length > 0;
    if (deadline.remainingMs() <= 0) break;
    // A lane that is due but gave nothing is in another relay's hands: looking again at once would only spin.
    const idle = visits.every((visit) => visit === 0);
    if (!idle) continue;
    // Or it was left alone, since its batch would not have ended in time.
    if (relay.outOfTime()) break;
    if (options.mode === 'scheduled') {
      workLeft = false;
      break;
    }
    const pauseMs = Math.min(options.pollMs, deadline.remainingMs());
    await sleep(Math.max(0, pauseMs), undefined, { signal }).catch(() => undefined);
  }
  return { settled, workLeft, nextDueSeconds: await store.secondsToNextDue() };
}

const everyBucket = Array.from({ length: defaults.buckets }, (_, bucket) => bucket);

class Relay {
  readonly #context: RelayContext;
  readonly #verified = new Map<string, Promise<void>>();
  readonly #paces = new Map<string, Pace>();

  constructor(context: RelayContext) {
    this.#context = context;
  }

  /** Works on one lane for a slice of time; answers how many messages were settled. */
  async visit({ destination, state }: DueLane): Promise<number> {
    if (this.#context.deadline.remainingMs() <= 0 || this.#context.signal.aborted) return 0;
    if (state === 'probe') return this.#probe(destination);
    const publisher = await this.#publisher(destination);
    if (typeof publisher === 'string') {
      await this.#open(destination, { reason: publisher, tried: [] });
      return 0;
    }
    const { options } = this.#context;
    const slice = Deadline.in(options.sliceMs);
    let settled = 0;
    while (
      slice.remainingMs() > 0 &&
      this.#context.deadline.remainingMs() > 0 &&
      !this.#context.signal.aborted
    ) {
      const session = await this.#session(destination, publisher, { limit: options.buckets });
      if (!session) break;
      const visit = await session.drain(slice);
      settled += visit.settled;
      if (visit.unavailable) {
        await this.#open(destination, visit.unavailable);
        break;
      }
      if (visit.settled === 0) break;
    }
    return settled;
  }

  /** Tries one message on a lane whose pause is over. */
  async #probe(destination: string): Promise<number> {
    const { options, store, telemetry } = this.#context;
    const probe = await store.takeProbe({ destination, leaseMs: options.leaseMs });
    if (!probe) return 0;
    const pauseSeconds = backoffSeconds(probe.failures + 1, options.breaker);
    const publisher = await this.#publisher(destination);
    if (typeof publisher === 'string') {
      await store.probeFailed(probe, { reason: publisher, pauseSeconds, tried: [] });
      return 0;
    }
    // All buckets, so that what earlier probes tried is among them. Nobody else works on an open lane.
    const session = await this.#session(destination, publisher, {
      limit: everyBucket.length,
      buckets: everyBucket,
    });
    try {
      const verdict = session ? await tryLane(session, probe) : 'untried';
      if (verdict === 'untried') await store.probeAbandoned(probe);
      else if (verdict === 'passed') await store.probePassed(probe);
      else await store.probeFailed(probe, { ...verdict, pauseSeconds });
      if (verdict !== 'passed') return 0;
      telemetry.logger.info('the destination answers again', { destination });
      return 1;
    } finally {
      await session?.release();
    }
  }

  async #session(
    destination: string,
    publisher: Publisher,
    wanted: { readonly limit: number; readonly buckets?: readonly number[] },
  ): Promise<LaneSession | undefined> {
    const { options, store } = this.#context;
    const trusted = Deadline.in(LaneSession.trustMs(options.leaseMs));
    const lease = await store.lease({ destination, leaseMs: options.leaseMs, ...wanted });
    const pace = this.#paces.get(destination) ?? { latestMs: 0 };
    this.#paces.set(destination, pace);
    return lease && new LaneSession(this.#context, publisher, lease, { trusted, pace });
  }

  /** Whether what is left of the time may be too short for one more batch of some lane. */
  outOfTime(): boolean {
    const slowestMs = Math.max(0, ...[...this.#paces.values()].map(({ latestMs }) => latestMs));
    return this.#context.deadline.remainingMs() <= ROOM * slowestMs;
  }

  async #open(
    destination: string,
    why: { readonly reason: string; readonly tried: readonly string[] },
  ): Promise<void> {
    const { options, store, telemetry } = this.#context;
    const pauseSeconds = backoffSeconds(1, options.breaker);
    if (!(await store.openLane({ destination, ...why, pauseSeconds }))) return;
    telemetry.count('LaneOpened', 1, destination);
    telemetry.logger.warn('the destination is unavailable; its lane is paused', {
      destination,
      reason: why.reason,
    });
  }

  /** The destination's publisher, verified once; or why there is none. */
  async #publisher(destination: string): Promise<Publisher | string> {
    const publisher = this.#context.destinations.get(destination);
    if (!publisher) return `no destination named "${destination}" is configured`;
    if (!publisher.verify) return publisher;
    const verified = this.#verified.get(destination) ?? publisher.verify({ signal: this.#context.signal });
    this.#verified.set(destination, verified);
    try {
      await verified;
      return publisher;
    } catch (error) {
      this.#verified.delete(destination);
      return publisher.classify(error).reason;
    }
  }
}
