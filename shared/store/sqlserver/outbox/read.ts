import { Buffer } from 'node:buffer';
import type { Exclusive } from '../../outbox/exclusive.ts';
import { claimedMessage } from '../../outbox/message.ts';
import type { Quotas } from '../../outbox/quotas.ts';
import type { ClaimedOutboxMessage, LaneLease, ReadRequest, ReadResult } from '../../outbox-store.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { holdSql } from '../sql/outbox-hold.ts';
import { readOnlySql, readSql } from '../sql/outbox-read.ts';

/** How long one read goes on setting followers held, where it meets nothing else. A lease lasts longer. */
const HOLDING_MS = 5_000;

interface Batch {
  readonly messages: readonly ClaimedOutboxMessage[];
  /** Rows that an earlier row of their key stands in the way of. */
  readonly blocked: readonly ClaimedOutboxMessage[];
  readonly more: boolean;
}

/**
 * Reads batches of leased buckets, and sets held what stands behind a blocked row. Never while a settle of the same lease
 * is under way: a read sees rows and not a moment, and would find a key's later row free but not the earlier one.
 */
export class OutboxReader {
  readonly #database: Database;
  readonly #exclusive: Exclusive;
  readonly #quotas: Quotas;
  readonly #hold: string;
  readonly #only: string;
  readonly #all: string;

  constructor(
    database: Database,
    names: Names,
    parts: { readonly exclusive: Exclusive; readonly quotas: Quotas },
  ) {
    this.#database = database;
    this.#exclusive = parts.exclusive;
    this.#quotas = parts.quotas;
    this.#hold = holdSql(names);
    this.#only = readOnlySql(names);
    this.#all = readSql(names);
  }

  async read(lease: LaneLease, request: ReadRequest): Promise<ReadResult> {
    if (lease.buckets.length === 0 || request.limit <= 0) return { messages: [], more: false };
    const end = performance.now() + HOLDING_MS;
    for (;;) {
      const { messages, blocked, more } = await this.#exclusive.run(lease.token, () =>
        request.only ? this.#readOnly(lease, request, request.only) : this.#readBatch(lease, request),
      );
      if (blocked.length === 0) return { messages, more };
      const held = await this.#exclusive.run(lease.token, () => this.#holdBehind(lease, blocked));
      if (messages.length > 0 || held === 0 || performance.now() > end) return { messages, more: true };
    }
  }

  async #readBatch(lease: LaneLease, request: ReadRequest): Promise<Batch> {
    const quotas = this.#quotas.share(lease, request.limit);
    const places = quotas.map(({ bucket, quota }, place) => ({ p: place, b: bucket, q: quota }));
    const rows = await this.#rows(this.#all, lease, request, places, request.except ?? []);
    const counts = new Map<number, number>();
    for (const row of rows) {
      const bucket = row['bucket'] as number;
      counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
    }
    const cut = rows.length >= request.limit;
    this.#quotas.learn(lease, quotas, counts, cut);
    const more = cut || quotas.some(({ bucket, quota }) => (counts.get(bucket) ?? 0) >= quota);
    return batchOf(lease.destination, rows, request.maxBytes, more);
  }

  async #readOnly(lease: LaneLease, request: ReadRequest, ids: readonly string[]): Promise<Batch> {
    const rows = await this.#rows(this.#only, lease, request, lease.buckets, ids);
    return batchOf(lease.destination, rows, request.maxBytes, rows.length >= request.limit);
  }

  async #rows(
    text: string,
    lease: LaneLease,
    { limit, maxBytes, probe }: ReadRequest,
    buckets: readonly unknown[],
    ids: readonly string[],
  ): Promise<readonly Record<string, unknown>[]> {
    const { rows } = await this.#database.query(text, [
      lease.destination,
      JSON.stringify(buckets),
      limit,
      maxBytes,
      probe?.token ?? null,
      JSON.stringify(ids),
    ]);
    return rows;
  }

  async #holdBehind(lease: LaneLease, blocked: readonly ClaimedOutboxMessage[]): Promise<number> {
    const lowest = new Map<number, string>();
    for (const { bucket, sequence } of blocked) {
      if (sequence !== null && !lowest.has(bucket)) lowest.set(bucket, sequence);
    }
    // A bucket of which only rows without a sequence were met has no place to look on from.
    const buckets = [...new Set(blocked.map(({ bucket }) => bucket))];
    const { rows } = await this.#database.query(this.#hold, [
      lease.destination,
      JSON.stringify(buckets),
      lease.token,
      JSON.stringify(buckets.map((bucket) => ({ b: bucket, s: lowest.get(bucket) ?? null }))),
      JSON.stringify(blocked.map(({ id, partitionKey }) => ({ id, k: partitionKey }))),
    ]);
    return Number(rows[0]?.['count'] ?? 0);
  }
}

/**
 * Sorts rows into messages in order of their sequence, and blocked ones. What the byte bound cut off came without
 * payload; where the exact bytes are more than the server reckoned, the bound is kept here.
 */
function batchOf(
  destination: string,
  rows: readonly Record<string, unknown>[],
  maxBytes: number,
  more: boolean,
): Batch {
  let sum = 0;
  let cut = false;
  const brought = [];
  for (const row of rows) {
    const payload = row['payload'] as string | null;
    const bytes = payload === null ? 0 : Buffer.byteLength(payload);
    sum += bytes;
    if (payload === null || (sum > maxBytes && brought.length > 0)) {
      cut = true;
      break;
    }
    brought.push({
      message: claimedMessage(destination, { ...row, bytes }),
      blocked: row['blocked'] === 1,
      // An earlier row of its key was committed while the read was under way: the next read has both.
      overtakes: row['overtakes'] === 1,
      place: row['sequence'] === null ? undefined : BigInt(row['sequence'] as string),
    });
  }
  brought.sort((a, b) => compare(a.place, b.place));
  return {
    messages: brought
      .filter(({ blocked, overtakes }) => !blocked && !overtakes)
      .map(({ message }) => message),
    blocked: brought.filter(({ blocked }) => blocked).map(({ message }) => message),
    more: more || cut || brought.some(({ overtakes }) => overtakes),
  };
}

/** A row without a sequence comes last. */
function compare(a: bigint | undefined, b: bigint | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  return a < b ? -1 : 1;
}
