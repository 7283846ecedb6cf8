import type { LaneLease } from '../../outbox-store.ts';

/** What a bucket may give to one read. */
export interface Quota {
  readonly bucket: number;
  readonly quota: number;
}

/** Leases whose buckets' supply is remembered. Those given back are forgotten; the bound is for those that are not. */
const REMEMBERED = 100;

/**
 * Shares a read's limit out among the leased buckets: evenly at first, so that one read touches many keys; then what
 * a bucket had too little for goes to those that had enough, so that a single full bucket still fills a batch.
 * It only remembers how the last read went: wrong figures cost a smaller batch, nothing else.
 */
export class Quotas {
  /** By lease token: messages that a bucket gave, where that was less than asked for. */
  readonly #short = new Map<string, Map<number, number>>();
  #turn = 0;

  share(lease: LaneLease, limit: number): readonly Quota[] {
    const short = this.#short.get(lease.token);
    const even = Math.max(1, Math.ceil(limit / lease.buckets.length));
    const full = lease.buckets.filter((bucket) => !short?.has(bucket)).length;
    const given = [...(short?.values() ?? [])].reduce((sum, count) => sum + count, 0);
    const more = full === 0 ? even : Math.min(limit, Math.max(even, Math.ceil((limit - given) / full)));
    // The limit cuts the last buckets' share: each is last in its turn.
    const start = this.#turn++ % lease.buckets.length;
    return [...lease.buckets.slice(start), ...lease.buckets.slice(0, start)].map((bucket) => ({
      bucket,
      quota: short?.has(bucket) ? even : more,
    }));
  }

  /** Takes in what a read brought. `cut`: the limit was reached, so that a bucket without rows may have some. */
  learn(lease: LaneLease, quotas: readonly Quota[], counts: ReadonlyMap<number, number>, cut: boolean): void {
    const short = this.#short.get(lease.token) ?? new Map<number, number>();
    for (const { bucket, quota } of quotas) {
      const count = counts.get(bucket) ?? 0;
      if (count >= quota || cut) short.delete(bucket);
      else short.set(bucket, count);
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
