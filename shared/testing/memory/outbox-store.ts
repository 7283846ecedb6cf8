import { randomUUID } from 'node:crypto';
import type { AddResult, OutboxRow } from '../../message/message.ts';
import {
  asClaimed,
  type ClaimedOutboxMessage,
  type DueLane,
  type LaneLease,
  type OutboxStore,
  type ReadRequest,
  type ReadResult,
  type Settlement,
  type SettleOptions,
  type SettleResult,
} from '../../store/outbox-store.ts';
import { MemoryLanes } from './outbox-lanes.ts';
import { settleRows } from './outbox-settle.ts';
import { now, type OutboxRecord, write } from './outbox-tables.ts';

/**
 * An outbox store in this process's memory. It shows that the contract suite can be passed by a store of another kind,
 * and, broken on purpose, that the suite notices. Each method runs without a pause in between, which makes it atomic.
 */
export class MemoryOutboxStore extends MemoryLanes implements OutboxStore {
  async add(rows: readonly OutboxRow[]): Promise<readonly AddResult[]> {
    return rows.map((row) => {
      const added = !this.tables.rows.has(row.id) && !this.tables.reserved.has(row.id);
      if (added) this.tables.rows.set(row.id, this.tables.record(row));
      return { id: row.id, added: added || this.tables.broken('duplicate add answers added') };
    });
  }

  async dueLanes(): Promise<readonly DueLane[]> {
    const destinations = new Set<string>();
    for (const record of this.tables.rows.values()) {
      if (this.tables.due(record)) destinations.add(record.row.destination);
    }
    return [...destinations].flatMap((destination): DueLane[] => {
      const lane = this.tables.lane(destination);
      if (lane.paused && !this.tables.broken('pause ignored')) return [];
      if (lane.openUntil === null) return [{ destination, state: 'ready' }];
      const free = lane.openUntil <= now() && lane.probeUntil <= now();
      return free ? [{ destination, state: 'probe' }] : [];
    });
  }

  async lease(request: {
    readonly destination: string;
    readonly limit: number;
    readonly leaseMs: number;
    readonly buckets?: readonly number[];
  }): Promise<LaneLease | undefined> {
    const { destination, leaseMs } = request;
    const wanted =
      request.buckets ??
      this.tables
        .inOrder(destination)
        .filter((record) => this.tables.due(record))
        .map(({ bucket }) => bucket);
    const limit = this.tables.broken('bucket limit ignored') ? 64 : request.limit;
    const buckets = [...new Set(wanted)]
      .filter((bucket) => this.#free(destination, bucket))
      .slice(0, limit)
      .sort((a, b) => a - b);
    if (buckets.length === 0) return undefined;
    const token = randomUUID();
    for (const bucket of buckets) {
      this.tables.leases.set(`${destination}/${bucket}`, { token, until: now() + leaseMs });
    }
    return { destination, token, buckets };
  }

  #free(destination: string, bucket: number): boolean {
    const lease = this.tables.leases.get(`${destination}/${bucket}`);
    if (!lease || this.tables.broken('leases are shared')) return true;
    return lease.until <= now() && !this.tables.broken('expired leases stay taken');
  }

  /** The buckets that the lease still holds. */
  #held(lease: LaneLease): number[] {
    return lease.buckets.filter((bucket) => {
      const held = this.tables.leases.get(`${lease.destination}/${bucket}`);
      return (
        (held?.token === lease.token && held.until > now()) || this.tables.broken('settle ignores the token')
      );
    });
  }

  async read(lease: LaneLease, request: ReadRequest): Promise<ReadResult> {
    const { tables } = this;
    if (!this.#readable(lease, request)) return { messages: [], more: false };
    const buckets = new Set(lease.buckets);
    const messages: ClaimedOutboxMessage[] = [];
    const highest = new Map<number, number>();
    let bytes = 0;
    for (const record of tables.inOrder(lease.destination)) {
      if (!buckets.has(record.bucket) || !tables.due(record)) continue;
      if (request.except?.includes(record.row.id)) continue;
      if (request.only && !request.only.includes(record.row.id)) continue;
      if (this.#passed(lease, record)) continue;
      if (this.#stepOver(record)) continue;
      const message = claim(record);
      const full =
        (messages.length >= request.limit && !tables.broken('limit ignored')) ||
        (bytes + message.payloadBytes > request.maxBytes && !tables.broken('bytes ignored'));
      if (full && messages.length > 0) return { messages, more: true };
      bytes += message.payloadBytes;
      messages.push(message);
      highest.set(record.bucket, record.sequence);
      if (tables.broken('a read marks its rows')) write(record, {});
    }
    if (tables.broken('a read begins where the last one ended')) {
      for (const [bucket, sequence] of highest) this.#remembered.set(`${lease.token}/${bucket}`, sequence);
    }
    return { messages, more: false };
  }

  /** Only the fault uses it: highest sequences read, by lease and bucket. A store must not begin where it last ended. */
  readonly #remembered = new Map<string, number>();

  #passed(lease: LaneLease, record: OutboxRecord): boolean {
    return record.sequence <= (this.#remembered.get(`${lease.token}/${record.bucket}`) ?? 0);
  }

  /** A paused lane answers nothing, an open one only its probe. */
  #readable({ destination }: LaneLease, { probe }: ReadRequest): boolean {
    const lane = this.tables.lane(destination);
    if (lane.paused) return this.tables.broken('pause ignored');
    const probed = lane.probeToken !== null && lane.probeToken === probe?.token && lane.probeUntil > now();
    return lane.openUntil === null || probed || this.tables.broken('an open lane is read');
  }

  /** True where an earlier row of the key waits or is held; the row is held too, and so leaves what is due. */
  #stepOver(record: OutboxRecord): boolean {
    const key = record.row.partitionKey;
    if (key === null || this.tables.broken('a key is stepped over and passed')) return false;
    const behind = [...this.tables.rows.values()].some(
      (other) =>
        other.row.partitionKey === key &&
        other.row.destination === record.row.destination &&
        other.sequence < record.sequence &&
        (other.held || (other.state < 2 && other.nextAt !== null)),
    );
    if (behind && !this.tables.broken('a key is not held')) write(record, { held: true });
    return behind;
  }

  async settle(lease: LaneLease, settlement: Settlement, options: SettleOptions): Promise<SettleResult> {
    const buckets = this.#held(lease);
    for (const bucket of buckets) {
      const held = this.tables.leases.get(`${lease.destination}/${bucket}`);
      if (held && !this.tables.broken('settle does not extend the lease'))
        held.until = now() + options.leaseMs;
    }
    return { ...settleRows(this.tables, settlement, options, new Set(buckets)), buckets };
  }

  async release(lease: LaneLease): Promise<void> {
    for (const bucket of lease.buckets) {
      const name = `${lease.destination}/${bucket}`;
      if (
        this.tables.leases.get(name)?.token === lease.token ||
        this.tables.broken('release ignores the token')
      ) {
        this.tables.leases.delete(name);
      }
    }
  }

  async bucketsOf(ids: readonly string[]) {
    return ids.flatMap((id) => {
      const record = this.tables.rows.get(id);
      return record && record.state < 2
        ? [{ id, destination: record.row.destination, bucket: record.bucket }]
        : [];
    });
  }

  async secondsToNextDue(): Promise<number | undefined> {
    const instants = [...this.tables.lanes.values()].flatMap(({ openUntil }) => openUntil ?? []);
    for (const { state, held, nextAt, lockedUntil } of this.tables.rows.values()) {
      if (state < 2 && !held && nextAt !== null) instants.push(nextAt);
      if (state === 1 && lockedUntil !== null) instants.push(lockedUntil);
    }
    return instants.length === 0 ? undefined : (Math.min(...instants) - now()) / 1000;
  }
}

function claim({ row, bucket, sequence, retryCount }: OutboxRecord): ClaimedOutboxMessage {
  return asClaimed({
    id: row.id,
    messageType: row.messageType,
    payload: row.payload,
    headers: row.headers ?? {},
    correlationId: row.correlationId,
    partitionKey: row.partitionKey,
    replay: 0,
    destination: row.destination,
    bucket,
    sequence: String(sequence),
    retryCount,
    maxRetries: row.maxRetries,
    payloadBytes: Buffer.byteLength(row.payload),
  });
}
