import { State } from '../../message/message.ts';
import type {
  ClaimedInboxMessage,
  FailedHandling,
  InboxSettleResult,
  InboxStore,
  IngestResult,
  NewInboxRow,
  Transaction,
  TransactionLimits,
} from '../../store/inbox-store.ts';
import type { OnFailedKey } from '../../store/outbox-store.ts';
import { MemoryClaims } from './inbox-claim.ts';
import { change, type InboxRecord, now } from './inbox-tables.ts';
import { storable } from './outbox-settle.ts';
import { MemoryTransaction, type MemoryTx } from './transaction.ts';

/** An inbox store in this process's memory: the outbox one's counterpart, for the same reasons. */
export class MemoryInboxStore extends MemoryClaims implements InboxStore<MemoryTx> {
  /** Whether a connection was closed under a transaction. */
  #lost = false;

  async ingest(rows: readonly NewInboxRow[]): Promise<readonly IngestResult[]> {
    const before = this.tables.rows.length;
    return rows.map((row) => {
      const there = this.tables.find(row);
      if (!there || this.#addedAllTheSame(there, before)) {
        this.tables.insert(row);
        return { added: true, differs: false };
      }
      return { added: false, differs: there.row.payload !== row.payload };
    });
  }

  #addedAllTheSame(there: InboxRecord, before: number): boolean {
    const inBatch = there.sequence >= before;
    return inBatch
      ? this.tables.broken('duplicates within a batch are added')
      : there.state === State.Processed && this.tables.broken('a duplicate of a Processed message is added');
  }

  async begin(limits: TransactionLimits): Promise<MemoryTransaction> {
    return new MemoryTransaction(
      limits,
      (effect) => this.tables.effects.push(effect),
      () => {
        this.#lost = true;
      },
    );
  }

  async reachable(): Promise<boolean> {
    return !this.tables.broken('a lost connection passes for an outage') || !this.#lost;
  }

  async markProcessed(
    transaction: Transaction<MemoryTx>,
    message: ClaimedInboxMessage,
  ): Promise<{ readonly nextTypes: readonly string[] } | undefined> {
    const ours = opened(transaction);
    const record = this.tables.broken('processed ignores the token')
      ? this.tables.rows.find(({ rowId }) => rowId === message.rowId)
      : this.#held(message);
    if (!record) return undefined;
    const done = (): void =>
      change(record, {
        state: State.Processed,
        ended: true,
        retryCount: record.retryCount - 1,
        lostLeases: 0,
        lastError: null,
        lockToken: null,
      });
    if (this.tables.broken('processed survives the rollback')) done();
    record.markedBy = ours;
    ours.later(done, () => {
      record.markedBy = null;
    });
    return { nextTypes: this.tables.nextTypes(record) };
  }

  async markFailed(
    failures: readonly FailedHandling[],
    options: { readonly onFailedKey: OnFailedKey },
  ): Promise<InboxSettleResult> {
    return this.#settle(failures, ({ message, reason, retryInSeconds }) => {
      const record = this.tables.broken('failed ignores the token')
        ? this.tables.rows.find(({ rowId }) => rowId === message.rowId)
        : this.#held(message);
      if (!record) return undefined;
      const counted = this.tables.broken('attempt not counted in the claim') ? 1 : 0;
      const retryCount = record.retryCount + counted;
      change(record, { retryCount, lostLeases: 0, lockToken: null });
      const over = retryCount > record.row.maxRetries && !this.tables.broken('retries never end');
      if (retryInSeconds === undefined || over) {
        this.end(record, reason, options.onFailedKey);
      } else {
        const wait = this.tables.broken('failed is due at once') ? 0 : retryInSeconds * 1000;
        change(record, { state: State.Pending, nextAt: now() + wait, lastError: storable(reason) });
      }
      return record;
    });
  }

  async release(messages: readonly ClaimedInboxMessage[]): Promise<InboxSettleResult> {
    const refund = this.tables.broken('release counts the attempt') ? 0 : 1;
    return this.#settle(
      messages.map((message) => ({ message })),
      ({ message }) => {
        const record = this.#held(message);
        if (!record) return undefined;
        change(record, {
          state: State.Pending,
          lockToken: null,
          lostLeases: 0,
          retryCount: record.retryCount - refund,
        });
        return record;
      },
    );
  }

  /** Tries each outcome, and reports what was changed, ended or lost, and who is to be woken. */
  #settle<Outcome extends { readonly message: ClaimedInboxMessage }>(
    outcomes: readonly Outcome[],
    apply: (outcome: Outcome) => InboxRecord | undefined,
  ): InboxSettleResult {
    const settled: string[] = [];
    const ended: string[] = [];
    const lost: string[] = [];
    const nextTypes = new Set<string>();
    for (const outcome of outcomes) {
      const record = apply(outcome);
      if (!record) {
        lost.push(outcome.message.rowId);
        continue;
      }
      settled.push(record.rowId);
      if (record.state !== State.Failed) continue;
      ended.push(record.rowId);
      for (const type of this.tables.nextTypes(record)) nextTypes.add(type);
    }
    return { settled, ended, lost, nextTypes: [...nextTypes] };
  }

  /** The row, where this claim of it still runs. */
  #held(message: ClaimedInboxMessage): InboxRecord | undefined {
    return this.tables.rows.find(
      (record) =>
        record.rowId === message.rowId &&
        record.state === State.Processing &&
        record.lockToken === message.lockToken &&
        record.lockedUntil > now() &&
        record.markedBy === null,
    );
  }

  async receive(
    transaction: Transaction<MemoryTx>,
    receipt: { readonly consumer: string; readonly source: string; readonly externalMessageId: string },
  ): Promise<boolean> {
    const ours = opened(transaction);
    const digest = this.tables.identity(receipt);
    for (;;) {
      const holder = this.tables.receipts.get(digest);
      if (!holder) break;
      if (this.tables.broken('receipts do not wait')) return false;
      if (holder === ours || holder.committed) return false;
      await holder.ended;
    }
    if (this.tables.broken('receipts are not kept')) return true;
    this.tables.receipts.set(digest, ours);
    ours.later(
      () => undefined,
      () => {
        if (!ours.committed) this.tables.receipts.delete(digest);
      },
    );
    return true;
  }

  async secondsToNextDue(request: {
    readonly consumer: string;
    readonly messageType: string;
  }): Promise<number | undefined> {
    const instants = this.tables.rows.flatMap(({ row, state, nextAt, lockedUntil }) => {
      if (row.consumer !== request.consumer || row.messageType !== request.messageType) return [];
      if (state === State.Processing) return [lockedUntil];
      return state === State.Pending && nextAt !== null ? [nextAt] : [];
    });
    return instants.length === 0 ? undefined : (Math.min(...instants) - now()) / 1000;
  }
}

function opened(transaction: Transaction<MemoryTx>): MemoryTransaction {
  if (transaction instanceof MemoryTransaction) return transaction;
  throw new TypeError('the in-memory store takes only its own transactions');
}
