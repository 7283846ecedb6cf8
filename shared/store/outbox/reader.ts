import type { ClaimedOutboxMessage, LaneLease, ReadRequest, ReadResult } from '../outbox-store.ts';
import { type DriverRow, isTrue } from '../values.ts';
import type { Exclusive } from './exclusive.ts';
import { claimedMessage } from './message.ts';
import type { Quota, Quotas } from './quotas.ts';

/** What an engine brings to reads of the outbox; each but `fitting` is one round trip. */
export interface OutboxReads {
  /** Due rows of the lease's buckets, each up to its quota; those past the byte bound come without payload. */
  due(lease: LaneLease, request: ReadRequest, quotas: readonly Quota[]): Promise<readonly DriverRow[]>;
  /** Those of the ids that are due. */
  only(lease: LaneLease, request: ReadRequest, ids: readonly string[]): Promise<readonly DriverRow[]>;
  /** The rows before the one that the byte bound cuts off, with their payloads' size in `bytes`. At least one, where there is any. */
  fitting(rows: readonly DriverRow[], maxBytes: number): readonly DriverRow[];
  /** Sets held what stands behind blocked rows; answers how many rows that were. */
  hold(lease: LaneLease, behind: Blocked): Promise<number>;
}

/** Blocked rows that a read met. */
export interface Blocked {
  readonly messages: readonly ClaimedOutboxMessage[];
  /** Their buckets, each with the lowest sequence met there: null where only rows without one were, so that there is no place to look on from. */
  readonly buckets: readonly { readonly bucket: number; readonly lowest: string | null }[];
}

interface Batch {
  readonly messages: readonly ClaimedOutboxMessage[];
  /** Rows that an earlier row of their key stands in the way of. */
  readonly blocked: readonly ClaimedOutboxMessage[];
  readonly more: boolean;
}

/** How long one read goes on setting followers held, where it meets nothing else. A lease lasts longer. */
const HOLDING_MS = 5_000;

/** Reads batches of leased buckets, and sets held what stands behind a blocked row. */
export class OutboxReader {
  readonly #reads: OutboxReads;
  readonly #exclusive: Exclusive;
  readonly #quotas: Quotas;

  constructor(reads: OutboxReads, parts: { readonly exclusive: Exclusive; readonly quotas: Quotas }) {
    this.#reads = reads;
    this.#exclusive = parts.exclusive;
    this.#quotas = parts.quotas;
  }

  async read(lease: LaneLease, request: ReadRequest): Promise<ReadResult> {
    if (lease.buckets.length === 0 || request.limit <= 0) return { messages: [], more: false };
    const end = performance.now() + HOLDING_MS;
    for (;;) {
      const { messages, blocked, more } = request.only
        ? await this.#readOnly(lease, request, request.only)
        : await this.#readBatch(lease, request);
      if (blocked.length === 0) return { messages, more };
      // Not while a settle of this lease is under way: the one would not see the other's rows, and held ones could be left behind.
      const held = await this.#exclusive.run(lease.token, () => this.#reads.hold(lease, behind(blocked)));
      if (messages.length > 0 || held === 0 || performance.now() > end) return { messages, more: true };
    }
  }

  async #readBatch(lease: LaneLease, request: ReadRequest): Promise<Batch> {
    const quotas = this.#quotas.share(lease, request.limit);
    const rows = await this.#reads.due(lease, request, quotas);
    const counts = new Map<number, number>();
    for (const row of rows) {
      const bucket = row['bucket'] as number;
      counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
    }
    const cut = rows.length >= request.limit;
    this.#quotas.learn(lease, quotas, counts, cut);
    const more = cut || quotas.some(({ bucket, quota }) => (counts.get(bucket) ?? 0) >= quota);
    return this.#batchOf(lease, request, rows, more);
  }

  async #readOnly(lease: LaneLease, request: ReadRequest, ids: readonly string[]): Promise<Batch> {
    const rows = await this.#reads.only(lease, request, ids);
    return this.#batchOf(lease, request, rows, rows.length >= request.limit);
  }

  /** Sorts rows into messages in order of their sequence, and blocked ones. */
  #batchOf(lease: LaneLease, request: ReadRequest, rows: readonly DriverRow[], more: boolean): Batch {
    const fitting = this.#reads.fitting(rows, request.maxBytes);
    const brought = fitting.map((row) => ({
      message: claimedMessage(lease.destination, row),
      blocked: isTrue(row['blocked']),
      // An earlier row of its key was committed while the read was under way: the next read has both. Not where a read is a snapshot.
      overtakes: isTrue(row['overtakes']),
      place: row['sequence'] === null ? undefined : BigInt(row['sequence'] as string),
    }));
    brought.sort((a, b) => compare(a.place, b.place));
    return {
      messages: brought
        .filter(({ blocked, overtakes }) => !blocked && !overtakes)
        .map((each) => each.message),
      blocked: brought.filter(({ blocked }) => blocked).map(({ message }) => message),
      more: more || fitting.length < rows.length || brought.some(({ overtakes }) => overtakes),
    };
  }
}

function behind(messages: readonly ClaimedOutboxMessage[]): Blocked {
  const lowest = new Map<number, string | null>();
  for (const { bucket, sequence } of messages) lowest.set(bucket, lowest.get(bucket) ?? sequence);
  return { messages, buckets: [...lowest].map(([bucket, sequence]) => ({ bucket, lowest: sequence })) };
}

/** A row without a sequence comes last. */
function compare(a: bigint | undefined, b: bigint | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  return a < b ? -1 : 1;
}
