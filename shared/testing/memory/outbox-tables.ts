import type { OutboxRow } from '../../message/message.ts';
import { State } from '../../message/message.ts';
import type { OutboxFault } from './faults.ts';

/** A row of the outbox. Instants are milliseconds of the process's monotonic clock. */
export interface OutboxRecord {
  readonly row: OutboxRow;
  readonly bucket: number;
  readonly sequence: number;
  state: State;
  held: boolean;
  retryCount: number;
  nextAt: number | null;
  lockedUntil: number | null;
  lastError: string | null;
  ended: boolean;
  /** Counts the writes to the row. */
  version: number;
}

/** A lane's breaker and, apart from it, a person's pause. */
export interface LaneRecord {
  failures: number;
  openUntil: number | null;
  tried: string[];
  probeToken: string | null;
  probeUntil: number;
  paused: boolean;
}

/** What the stores of one in-memory database share: a process's stand-in for tables. */
export class OutboxTables {
  readonly rows = new Map<string, OutboxRecord>();
  readonly archive = new Set<string>();
  readonly leases = new Map<string, { token: string; until: number }>();
  readonly lanes = new Map<string, LaneRecord>();
  /** Ids of transactions still open: taken, as a database would have another insert wait for them. */
  readonly reserved = new Set<string>();
  readonly #faults: ReadonlySet<OutboxFault>;
  #sequence = 0;

  constructor(faults: Iterable<OutboxFault> = []) {
    this.#faults = new Set(faults);
  }

  /** Whether the store is to be broken in this way. */
  broken(fault: OutboxFault): boolean {
    return this.#faults.has(fault);
  }

  /** A new record, numbered now, as a sequence numbers rows before they commit. */
  record(row: OutboxRow): OutboxRecord {
    this.#sequence += 1;
    return {
      row,
      bucket: bucketOf(row),
      sequence: this.#sequence,
      state: State.Pending,
      held: false,
      retryCount: 0,
      nextAt: row.delaySeconds === null ? null : now() + row.delaySeconds * 1000,
      lockedUntil: null,
      lastError: null,
      ended: false,
      version: 0,
    };
  }

  lane(destination: string): LaneRecord {
    let lane = this.lanes.get(destination);
    if (!lane) {
      lane = { failures: 0, openUntil: null, tried: [], probeToken: null, probeUntil: 0, paused: false };
      this.lanes.set(destination, lane);
    }
    return lane;
  }

  /** The one due predicate. */
  due(record: OutboxRecord): boolean {
    const free =
      record.state === State.Pending ||
      (record.state === State.Processing &&
        (this.broken('foreign claims ignored') || (record.lockedUntil ?? 0) <= now()));
    return free && !record.held && (record.nextAt === null || record.nextAt <= now());
  }

  /** All rows of a lane, in order. */
  inOrder(destination: string): OutboxRecord[] {
    const rows = [...this.rows.values()].filter(
      (record) => record.row.destination === destination || this.broken('lanes are mixed'),
    );
    return this.broken('order by id')
      ? rows.sort((a, b) => (a.row.id < b.row.id ? -1 : 1))
      : rows.sort((a, b) => a.sequence - b.sequence);
  }
}

/** The tables' clock. */
export function now(): number {
  return performance.now();
}

/** The hash of the key, or of the id where there is none, masked to six bits (FNV-1a). */
export function bucketOf(row: OutboxRow): number {
  let hash = 0x811c9dc5;
  for (const char of row.partitionKey ?? row.id) {
    hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  }
  return (hash ^ (hash >>> 15)) & 63;
}

/** Changes a row and counts the write. */
export function write(record: OutboxRecord, change: Partial<OutboxRecord>): void {
  Object.assign(record, change, { version: record.version + 1 });
}
