import type { LaneLease } from '../outbox-store.ts';

/** What a bucket may give to one read. */
export interface Quota {
  readonly bucket: number;
  readonly quota: number;
}

/** Leases whose buckets' supply is remembered. Those given back are forgotten; the bound is for those that are not. */
const REMEMBERED = 100;

/**
 * Shares a read's limit out among the leased buckets: evenly at first, so that one read touches many keys; then all of
 * it among those that had enough the last time, so that a single full bucket still fills a batch. What is remembered
 * is a guess: where it is wrong, a batch is smaller, and nothing else.
 */
export class Quotas {
  /** By lease token: buckets that gave less than they were asked for. */
  readonly #short = new Map<string, Set<number>>();

  share(lease: LaneLease, limit: number): readonly Quota[] {
    const short = this.#short.get(lease.token) ?? new Set();
    const full = lease.buckets.filter((bucket) => !short.has(bucket)).length;
    const even = shareOf(limit, lease.buckets.length);
    const more = full === 0 ? even : shareOf(limit, full);
    return lease.buckets.map((bucket) => ({ bucket, quota: short.has(bucket) ? even : more }));
  }

  /** Takes in what a read brought. `cut`: the limit was reached, so few rows of a bucket say nothing of it. */
  learn(lease: LaneLease, quotas: readonly Quota[], counts: ReadonlyMap<number, number>, cut: boolean): void {
    const short = this.#short.get(lease.token) ?? new Set();
    for (const { bucket, quota } of quotas) {
      if ((counts.get(bucket) ?? 0) >= quota) short.delete(bucket);
      else if (!cut) short.add(bucket);
    }
    this.#short.delete(lease.token);
    this.#short.set(lease.token, short);
    const [oldest] = this.#short.keys();
    if (this.#short.size > REMEMBERED && oldest !== undefined) this.#short.delete(oldest);
  }

  forget(lease: LaneLease): void {
    this.#short.delete(lease.token);
  }
}

/**
 * Half as much again as an even share. Of what the buckets then offer a read takes the earliest up to its limit, so none
 * falls behind another, and one's surplus fills another's want.
 */
function shareOf(limit: number, buckets: number): number {
  return Math.min(limit, Math.ceil((1.5 * limit) / buckets));
}
