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

/** Reads batches of leased buckets, and sets held what stands behind a blocked row. */
export class OutboxReader {
  readonly #database: Database;
  readonly #exclusive: Exclusive;
  readonly #quotas: Quotas;
  readonly #hold: string;
  readonly #only: string;
  readonly #all: string;
  /** The same with ids left out. */
  readonly #others: string;

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
    this.#all = readSql(names, { except: false });
    this.#others = readSql(names, { except: true });
  }

  async read(lease: LaneLease, request: ReadRequest): Promise<ReadResult> {
    if (lease.buckets.length === 0 || request.limit <= 0) return { messages: [], more: false };
    const end = performance.now() + HOLDING_MS;
    for (;;) {
      const batch = request.only
        ? await this.#readOnly(lease, request, request.only)
        : await this.#readBatch(lease, request);
      const { messages, blocked, more } = batch;
      if (blocked.length === 0) return { messages, more };
      const held = await this.#holdBehind(lease, blocked);
      if (messages.length > 0 || held === 0 || performance.now() > end) return { messages, more: true };
    }
  }

  async #readBatch(lease: LaneLease, request: ReadRequest): Promise<Batch> {
    const { except = [], limit, maxBytes, probe } = request;
    const quotas = this.#quotas.share(lease, limit);
    const { rows } = await this.#database.query(except.length > 0 ? this.#others : this.#all, [
      lease.destination,
      quotas.map(({ bucket }) => bucket),
      quotas.map(({ quota }) => quota),
      limit,
      maxBytes,
      probe?.token ?? null,
      ...(except.length > 0 ? [except] : []),
    ]);
    const counts = new Map<number, number>();
    for (const row of rows) {
      const bucket = row['bucket'] as number;
      counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
    }
    const cut = rows.length >= limit;
    this.#quotas.learn(lease, quotas, counts, cut);
    const more = cut || quotas.some(({ bucket, quota }) => (counts.get(bucket) ?? 0) >= quota);
    return batchOf(lease.destination, rows, more);
  }

  async #readOnly(lease: LaneLease, request: ReadRequest, ids: readonly string[]): Promise<Batch> {
    const { limit, maxBytes, probe } = request;
    const { rows } = await this.#database.query(this.#only, [
      lease.destination,
      lease.buckets,
      ids,
      limit,
      maxBytes,
      probe?.token ?? null,
    ]);
    return batchOf(lease.destination, rows, rows.length >= limit);
  }

  /** Not while a settle of this lease is under way: the one would not see the other's rows, and held ones could be left behind. */
  async #holdBehind(lease: LaneLease, blocked: readonly ClaimedOutboxMessage[]): Promise<number> {
    const lowest = new Map<number, string>();
    for (const { bucket, sequence } of blocked) {
      if (sequence !== null && !lowest.has(bucket)) lowest.set(bucket, sequence);
    }
    // A bucket of which only rows without a sequence were met has no place to look on from.
    const buckets = [...new Set(blocked.map(({ bucket }) => bucket))];
    return await this.#exclusive.run(lease.token, async () => {
      const { rowCount } = await this.#database.query(this.#hold, [
        lease.destination,
        buckets,
        lease.token,
        buckets.map((bucket) => lowest.get(bucket) ?? null),
        [...new Set(blocked.map(({ partitionKey }) => partitionKey))],
        blocked.map(({ id }) => id),
        blocked.map(({ partitionKey }) => partitionKey),
      ]);
      return rowCount ?? 0;
    });
  }
}

/** Sorts rows into messages in order of their sequence, and blocked ones. What the byte bound cut off came without payload. */
function batchOf(destination: string, rows: readonly Record<string, unknown>[], more: boolean): Batch {
  const end = rows.findIndex((row) => row['payload'] === null);
  const brought = (end === -1 ? rows : rows.slice(0, end)).map((row) => ({
    message: claimedMessage(destination, row),
    blocked: row['blocked'] === true,
    place: row['sequence'] === null ? undefined : BigInt(row['sequence'] as string),
  }));
  brought.sort((a, b) => compare(a.place, b.place));
  return {
    messages: brought.filter(({ blocked }) => !blocked).map(({ message }) => message),
    blocked: brought.filter(({ blocked }) => blocked).map(({ message }) => message),
    more: more || end !== -1,
  };
}

/** A row without a sequence comes last. */
function compare(a: bigint | undefined, b: bigint | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  return a < b ? -1 : 1;
}
