import { performance } from 'node:perf_hooks';
import type { LaneLease, OutboxStore } from '../../shared/store/outbox-store.ts';

/** While a relay surely held a bucket, by the clock of this process. */
interface Held {
  readonly place: string;
  readonly token: string;
  readonly from: number;
  until: number;
}

/** Two relays that held one bucket at the same time. */
export interface Overlap {
  readonly place: string;
  readonly ms: number;
}

/**
 * Watches relays' stores, and finds buckets that two relays held at once. A lease is counted from when its answer came to the
 * earliest instant at which it can have ended: so much after its last extension was asked for, or when its release was.
 */
export class LeaseAudit {
  readonly #held: Held[] = [];
  readonly #running = new Map<string, Held>();

  /** The store, watched. */
  watch(store: OutboxStore): OutboxStore {
    return new Proxy(store, {
      get: (target, name) => {
        if (name === 'lease') return this.#lease(target);
        if (name === 'settle') return this.#settle(target);
        if (name === 'release') return this.#release(target);
        const value = Reflect.get(target, name) as unknown;
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  /** Leases that were seen. None would mean that nothing was watched. */
  get leases(): number {
    return this.#held.length;
  }

  overlaps(): readonly Overlap[] {
    const found: Overlap[] = [];
    for (const leases of Map.groupBy(this.#held, ({ place }) => place).values()) {
      const ordered = leases.toSorted((a, b) => a.from - b.from);
      for (const [n, lease] of ordered.entries()) {
        const before = ordered.slice(0, n).filter(({ token }) => token !== lease.token);
        const ms = Math.max(0, ...before.map(({ until }) => Math.min(until, lease.until) - lease.from));
        if (ms > 0) found.push({ place: lease.place, ms });
      }
    }
    return found;
  }

  #lease(store: OutboxStore): OutboxStore['lease'] {
    return async (request) => {
      const asked = performance.now();
      const lease = await store.lease(request);
      const from = performance.now();
      for (const [key, place] of lease ? places(lease) : []) {
        const held = { place, token: lease?.token ?? '', from, until: asked + request.leaseMs };
        this.#held.push(held);
        this.#running.set(key, held);
      }
      return lease;
    };
  }

  #settle(store: OutboxStore): OutboxStore['settle'] {
    return async (lease, settlement, options) => {
      const asked = performance.now();
      const result = await store.settle(lease, settlement, options);
      for (const [key] of places({ ...lease, buckets: result.buckets })) {
        const held = this.#running.get(key);
        if (held) held.until = Math.max(held.until, asked + options.leaseMs);
      }
      return result;
    };
  }

  #release(store: OutboxStore): OutboxStore['release'] {
    return async (lease) => {
      const asked = performance.now();
      for (const [key] of places(lease)) {
        const held = this.#running.get(key);
        if (held) held.until = Math.min(held.until, asked);
        this.#running.delete(key);
      }
      await store.release(lease);
    };
  }
}

/** For each bucket of a lease: what tells this lease of it from all others, and where it is. */
function places({
  destination,
  token,
  buckets,
}: Pick<LaneLease, 'destination' | 'token' | 'buckets'>): [string, string][] {
  return buckets.map((bucket) => [`${destination} ${bucket} ${token}`, `${destination} ${bucket}`]);
}
