import { randomUUID } from 'node:crypto';
import { State } from '../../message/message.ts';
import type { NewInboxRow } from '../../store/inbox-store.ts';
import type { InboxIdentity } from '../inbox/harness.ts';
import type { InboxFault } from './faults.ts';
import type { MemoryTransaction } from './transaction.ts';

/** A row of the inbox. Instants are milliseconds of the process's monotonic clock. */
export interface InboxRecord {
  readonly row: NewInboxRow;
  readonly rowId: string;
  readonly sequence: number;
  state: State;
  retryCount: number;
  lostLeases: number;
  nextAt: number | null;
  lockToken: string | null;
  lockedUntil: number;
  /** The open transaction that has marked the row: others skip it. */
  markedBy: MemoryTransaction | null;
  /** Failed under `block`: its key waits. */
  blocks: boolean;
  lastError: string | null;
  ended: boolean;
  version: number;
}

/** What the stores of one in-memory database share: a process's stand-in for tables. */
export class InboxTables {
  readonly rows: InboxRecord[] = [];
  readonly paused = new Set<string>();
  readonly effects: string[] = [];
  /** Receipts, each with the transaction that holds it until it ends. */
  readonly receipts = new Map<string, MemoryTransaction>();
  readonly #faults: ReadonlySet<InboxFault>;

  constructor(faults: Iterable<InboxFault> = []) {
    this.#faults = new Set(faults);
  }

  /** Whether the store is to be broken in this way. */
  broken(fault: InboxFault): boolean {
    return this.#faults.has(fault);
  }

  insert(row: NewInboxRow): InboxRecord {
    const failed = row.failedReason !== null;
    const record: InboxRecord = {
      row,
      rowId: randomUUID(),
      sequence: this.rows.length,
      state: failed ? State.Failed : State.Pending,
      retryCount: 0,
      lostLeases: 0,
      nextAt: null,
      lockToken: null,
      lockedUntil: 0,
      markedBy: null,
      blocks: false,
      lastError: row.failedReason,
      ended: failed,
      version: 0,
    };
    this.rows.push(record);
    return record;
  }

  find(identity: InboxIdentity): InboxRecord | undefined {
    const wanted = this.identity(identity);
    return this.rows.find(({ row }) => this.identity(row) === wanted);
  }

  /** What makes two messages one: exact text, each part with its length before it. */
  identity({ consumer, source, externalMessageId }: InboxIdentity): string {
    let id = externalMessageId;
    if (this.broken('dedup folds case')) id = id.toLowerCase();
    if (this.broken('dedup ignores trailing spaces')) id = id.trimEnd();
    const parts = this.broken('dedup ignores the consumer') ? [source, id] : [consumer, source, id];
    return parts.map((part) => `${part.length}:${part}`).join('');
  }

  /** The rows of the record's key that are not done, lowest first: a Failed one that blocks is among them. */
  key({ row }: InboxRecord): InboxRecord[] {
    return this.rows.filter(
      (other) =>
        other.row.partitionKey === row.partitionKey &&
        other.row.consumer === row.consumer &&
        other.row.source === row.source &&
        (other.state < 2 || other.blocks) &&
        (other.row.messageType === row.messageType || !this.broken('keys are ordered within a type only')),
    );
  }

  /** The type that comes next in the record's key, without the record itself, where it could be claimed now. */
  nextTypes(record: InboxRecord): string[] {
    if (record.row.partitionKey === null || record.blocks) return [];
    const next = this.key(record).find((other) => other !== record);
    return next && next.state < 2 ? [next.row.messageType] : [];
  }
}

/** The tables' clock. */
export function now(): number {
  return performance.now();
}

/** Changes a row and counts the write. */
export function change(record: InboxRecord, fields: Partial<InboxRecord>): void {
  Object.assign(record, fields, { version: record.version + 1 });
}

/** Whether a claim on the row runs. */
export function running(record: InboxRecord): boolean {
  return record.state === State.Processing && (record.lockedUntil > now() || record.markedBy !== null);
}
