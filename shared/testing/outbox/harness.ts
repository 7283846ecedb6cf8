import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { defaults } from '../../delivery/defaults.ts';
import type { AddResult, OutboxRow } from '../../message/message.ts';
import type {
  ClaimedOutboxMessage,
  LaneLease,
  OutboxStore,
  ReadRequest,
  Settlement,
  SettleOptions,
} from '../../store/outbox-store.ts';
import { LONG_MS } from '../case.ts';

/** A row as the suite looks at it. Instants are told as distances from the database's own now. */
export interface OutboxRowView {
  readonly state: number;
  readonly held: boolean;
  readonly retryCount: number;
  /** Seconds until the next attempt, negative once it has come; null where it is due at once. */
  readonly waitsSeconds: number | null;
  readonly lastError: string | null;
  /** Whether the row has an end (`processed_at_utc`). */
  readonly ended: boolean;
  /** Anything that changes with every write to the row, e.g. PostgreSQL's `xmin` and `ctid`. */
  readonly version: string;
}

/** A row as another program writes it: the seed's columns only. */
export interface ForeignOutboxRow {
  readonly id: string;
  readonly destination: string;
  readonly messageType: string;
  readonly payload: string;
  readonly maxRetries: number;
  readonly state: 0 | 1;
  /** For state 1: how long that program's claim still runs. */
  readonly lockedForMs?: number;
  /** How far that program's clock is ahead, as its creation time shows. */
  readonly createdInSeconds?: number;
  /** JSON, of whatever shape that program writes. */
  readonly headersJson?: string;
  /** Retries as that program has counted them. @default 0 */
  readonly retryCount?: number;
}

/** A producer's transaction. */
export interface ProducerTransaction {
  add(rows: readonly OutboxRow[]): Promise<readonly AddResult[]>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** The least that the author of an outbox store provides. Each case gets a new one, with empty tables. */
export interface OutboxHarness {
  readonly store: OutboxStore;
  /** The same tables through a second store, as another process has it: it knows only what the database knows. */
  readonly another: OutboxStore;
  inspect(id: string): Promise<OutboxRowView | undefined>;
  /** Whether the archive has the message. */
  archived(id: string): Promise<boolean>;
  begin(): Promise<ProducerTransaction>;
  insertForeignRow(row: ForeignOutboxRow): Promise<void>;
  /** A person's discard, written straight to the row whoever holds the lease. */
  discard(id: string): Promise<void>;
  /** A person's requeue of a Failed message: due at once, with its retries before it again. */
  requeue(id: string): Promise<void>;
  /** A person's pause of a lane. */
  pause(destination: string): Promise<void>;
  resume(destination: string): Promise<void>;
  /** Cleans up, and rolls back transactions left open. */
  close(): Promise<void>;
}

/** The lane that cases use where nothing else is said. */
export const LANE = 'orders';

/** Options of a settle that nothing special is wanted of. */
export const KEEP: SettleOptions = { leaseMs: LONG_MS, afterSuccess: 'keep', onFailedKey: 'block' };

/** A message to add, with a random id, so that ids say nothing of the order. */
export function outboxRow(fields: Partial<OutboxRow> = {}): OutboxRow {
  return {
    id: randomUUID(),
    destination: LANE,
    messageType: 'order.placed',
    payload: '{"orderId":"1"}',
    headers: null,
    correlationId: null,
    partitionKey: null,
    delaySeconds: null,
    maxRetries: defaults.unlimitedRetries,
    ...fields,
  };
}

/** So many messages of one key, in order. */
export function keyed(partitionKey: string, count: number, fields: Partial<OutboxRow> = {}): OutboxRow[] {
  return Array.from({ length: count }, () => outboxRow({ ...fields, partitionKey }));
}

/** Takes every free bucket that has due rows. */
export async function leaseAll(
  store: OutboxStore,
  destination = LANE,
  leaseMs = LONG_MS,
): Promise<LaneLease | undefined> {
  return await store.lease({ destination, limit: defaults.buckets, leaseMs });
}

/** The same, where there must be some. */
export async function mustLease(
  store: OutboxStore,
  destination = LANE,
  leaseMs = LONG_MS,
): Promise<LaneLease> {
  const lease = await leaseAll(store, destination, leaseMs);
  assert.ok(lease, `lane "${destination}" has due messages in free buckets, but no lease was given`);
  assert.ok(lease.buckets.length > 0, 'a lease without buckets is no lease');
  return lease;
}

/** Reads from the start, without bounds that matter. */
export async function readAll(
  store: OutboxStore,
  lease: LaneLease,
  request: Partial<ReadRequest> = {},
): Promise<readonly ClaimedOutboxMessage[]> {
  const read = await store.read(lease, {
    limit: 1000,
    maxBytes: defaults.claimBytes,
    ...request,
  });
  return read.messages;
}

/** A settlement with what is given, and nothing else in it. */
export function outcome(parts: Partial<Settlement>): Settlement {
  return { published: [], failed: [], rejected: [], ...parts };
}

/** One failure of one message. */
export function failure(
  message: ClaimedOutboxMessage,
  retryInSeconds: number,
  reason = 'refused',
): Settlement {
  return outcome({ failed: [{ message, reason, retryInSeconds }] });
}

/** Ids, for comparing. */
export function ids(rows: readonly { readonly id: string }[]): string[] {
  return rows.map((row) => row.id);
}

/** Ids as a set's text, where order is not the matter. */
export function sorted(values: readonly string[]): string[] {
  return [...values].sort();
}

/** The only element. */
export function only<T>(values: readonly T[], what = 'message'): T {
  assert.equal(values.length, 1, `expected one ${what}, but there are ${values.length}`);
  return values[0] as T;
}
