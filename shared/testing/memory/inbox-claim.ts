import { randomUUID } from 'node:crypto';
import { State } from '../../message/message.ts';
import {
  asClaimedInbox,
  type ClaimedInboxMessage,
  type ClaimRequest,
  type ClaimResult,
} from '../../store/inbox-store.ts';
import type { OnFailedKey } from '../../store/outbox-store.ts';
import { change, type InboxRecord, type InboxTables, now, running } from './inbox-tables.ts';
import { storable } from './outbox-settle.ts';

/** The claiming half of the in-memory inbox store. */
export class MemoryClaims {
  protected readonly tables: InboxTables;

  constructor(tables: InboxTables) {
    this.tables = tables;
  }

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    const { consumer, messageType, onFailedKey } = request;
    const nextTypes = new Set<string>();
    let ended = 0;
    if (this.tables.paused.has(`${consumer}/${messageType}`) && !this.tables.broken('pause ignored')) {
      return { messages: [], alone: false, ended, nextTypes: [] };
    }
    for (const record of this.tables.rows) {
      if (!this.#wanted(record, request) || !this.#killed(record)) continue;
      const times = record.lostLeases + 1;
      this.end(record, `its lease ran out ${times} times: the handler is killed or frozen`, onFailedKey);
      ended += 1;
      for (const type of this.tables.nextTypes(record)) nextTypes.add(type);
    }
    const due = this.tables.rows.filter((record) => this.#wanted(record, request) && this.#claimable(record));
    const lost = due.find(({ state }) => state === State.Processing);
    const alone = lost !== undefined && !this.tables.broken('expired claimed in company');
    const messages = this.#take(alone ? [lost] : due, request);
    return { messages, alone, ended, nextTypes: [...nextTypes] };
  }

  #wanted({ row }: InboxRecord, request: ClaimRequest): boolean {
    if (row.consumer !== request.consumer) return false;
    const { source = row.source } = request;
    if (row.source !== source && !this.tables.broken('sources are mixed')) return false;
    return row.messageType === request.messageType || this.tables.broken('lanes are mixed');
  }

  /** True for a row that used up its attempts by losing leases, the last of them while it ran alone. */
  #killed(record: InboxRecord): boolean {
    return (
      record.state === State.Processing &&
      !running(record) &&
      record.retryCount > record.row.maxRetries &&
      record.lostLeases >= 1 &&
      !this.tables.broken('lost leases never end')
    );
  }

  #claimable(record: InboxRecord): boolean {
    if (record.state >= 2) return false;
    if (running(record)) return this.tables.broken('claims are shared');
    if (record.state === State.Processing && this.tables.broken('expired claims stay taken')) return false;
    if (record.nextAt !== null && record.nextAt > now()) return false;
    if (record.row.partitionKey === null) return true;
    const ofKey = this.tables.key(record);
    const busy = ofKey.some(running) && !this.tables.broken('a key is in two hands after a requeue');
    return ofKey[0] === record && !busy;
  }

  #take(due: readonly InboxRecord[], request: ClaimRequest): ClaimedInboxMessage[] {
    const messages: ClaimedInboxMessage[] = [];
    let bytes = 0;
    for (const record of due) {
      const size = Buffer.byteLength(record.row.payload);
      if (messages.length >= request.limit) break;
      if (messages.length > 0 && bytes + size > request.maxBytes && !this.tables.broken('bytes ignored'))
        break;
      bytes += size;
      const expired = record.state === State.Processing ? 1 : 0;
      const counted = this.tables.broken('attempt not counted in the claim') ? 0 : 1;
      const lockToken = randomUUID();
      change(record, {
        state: State.Processing,
        lockToken,
        lockedUntil: now() + request.leaseMs,
        nextAt: null,
        retryCount: record.retryCount + counted,
        lostLeases: record.lostLeases + expired,
      });
      messages.push(claimed(record, lockToken, record.retryCount + 1 - counted));
    }
    return messages;
  }

  /** Ends a row in Failed. */
  protected end(record: InboxRecord, reason: string, onFailedKey: OnFailedKey): void {
    const keyed = record.row.partitionKey !== null;
    let blocks = keyed && onFailedKey === 'block';
    if (blocks && this.tables.broken('a blocked key goes on')) blocks = false;
    if (keyed && this.tables.broken('a skipped key waits')) blocks = true;
    const lastError = storable(reason);
    change(record, { state: State.Failed, ended: true, nextAt: null, lockToken: null, lastError, blocks });
  }
}

function claimed({ row, rowId }: InboxRecord, lockToken: string, attempt: number): ClaimedInboxMessage {
  return asClaimedInbox({
    rowId,
    lockToken,
    consumer: row.consumer,
    source: row.source,
    externalMessageId: row.externalMessageId,
    messageType: row.messageType,
    payload: row.payload,
    headers: row.headers ?? {},
    correlationId: row.correlationId,
    partitionKey: row.partitionKey,
    attempt,
    maxRetries: row.maxRetries,
    createdAt: new Date().toISOString(),
  });
}
