import { randomUUID } from 'node:crypto';
import type { Probe } from '../../store/outbox-store.ts';
import { now, type OutboxTables, write } from './outbox-tables.ts';

/** The breaker's half of the in-memory outbox store. */
export class MemoryLanes {
  protected readonly tables: OutboxTables;

  constructor(tables: OutboxTables) {
    this.tables = tables;
  }

  async openLane(request: {
    readonly destination: string;
    readonly pauseSeconds: number;
    readonly tried: readonly string[];
  }): Promise<boolean> {
    const lane = this.tables.lane(request.destination);
    if (this.tables.broken('unavailable uses up a retry')) {
      for (const record of this.tables.rows.values()) write(record, { retryCount: record.retryCount + 1 });
    }
    if (lane.openUntil !== null) return false;
    Object.assign(lane, {
      failures: 1,
      openUntil: now() + request.pauseSeconds * 1000,
      tried: [...request.tried],
      probeToken: null,
    });
    return true;
  }

  async takeProbe(request: {
    readonly destination: string;
    readonly leaseMs: number;
  }): Promise<Probe | undefined> {
    const { destination, leaseMs } = request;
    const lane = this.tables.lane(destination);
    if (lane.openUntil === null || lane.openUntil > now() || lane.paused) return undefined;
    if (lane.probeUntil > now() && !this.tables.broken('the probe is anybody’s')) return undefined;
    const token = randomUUID();
    Object.assign(lane, { probeToken: token, probeUntil: now() + leaseMs });
    return { destination, token, failures: lane.failures, tried: [...lane.tried] };
  }

  async probePassed(probe: Probe): Promise<boolean> {
    const lane = this.#probed(probe);
    if (!lane) return false;
    Object.assign(lane, { failures: 0, openUntil: null, tried: [], probeToken: null, probeUntil: 0 });
    return true;
  }

  async probeFailed(
    probe: Probe,
    request: { readonly pauseSeconds: number; readonly tried: readonly string[] },
  ): Promise<boolean> {
    const lane = this.#probed(probe);
    if (!lane) return false;
    Object.assign(lane, {
      failures: lane.failures + 1,
      openUntil: now() + request.pauseSeconds * 1000,
      tried: [...new Set([...lane.tried, ...request.tried])],
      probeToken: null,
      probeUntil: 0,
    });
    return true;
  }

  async probeAbandoned(probe: Probe): Promise<void> {
    const lane = this.#probed(probe);
    if (lane) Object.assign(lane, { probeToken: null, probeUntil: 0 });
  }

  #probed(probe: Probe) {
    const lane = this.tables.lane(probe.destination);
    const ours = lane.probeToken === probe.token && lane.probeUntil > now();
    return ours || this.tables.broken('the probe is not fenced') ? lane : undefined;
  }
}
