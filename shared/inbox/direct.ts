import { Deadline } from '../delivery/deadline.ts';
import { defaults } from '../delivery/defaults.ts';
import { inParallel } from '../delivery/parallel.ts';
import { silent, type Telemetry } from '../delivery/telemetry.ts';
import { hopsOf, names } from '../message/envelope/names.ts';
import { type Mapping, readRecord } from '../message/envelope/read.ts';
import type { ReadMessage } from '../message/envelope/read-message.ts';
import type { InboxStore } from '../store/inbox-store.ts';
import { callHandler, type Handling, messageLogger, readMessage } from './context.ts';
import { type DelayedRecord, type DirectRecord, groupsOf, unread } from './direct-record.ts';
import type { SqsBatchResponse } from './ingest.ts';
import { type AttemptEnd, transact } from './transact.ts';

/** What consumes messages straight from a queue. */
export interface DirectOptions<Payload, Tx, Outbox> extends Handling<Payload, Tx, Outbox> {
  readonly store: Pick<InboxStore<Tx>, 'begin' | 'reachable' | 'receive'>;
  /** Whose receipts these are: each consumer of a message handles it once. */
  readonly consumer: string;
  /** The source that identifies messages here. @default what the sender calls itself */
  readonly source?: string | undefined;
  /** For records in an envelope of your own. */
  readonly mapping?: Mapping | undefined;
  /**
   * Tells the queue when to give records out again, for handlers that throw `RetryAfter`: once for the batch. Without it,
   * and where it fails, the queue's own time holds. Must not reject.
   */
  readonly delay?: ((records: readonly DelayedRecord[]) => Promise<void>) | undefined;
  /** Records, or groups of a FIFO queue, at once. @default 4 */
  readonly parallelism?: number;
  readonly deadline: Deadline;
  /** Kept free before the deadline, to answer in time. @default 1,500 */
  readonly marginMs?: number;
  readonly signal?: AbortSignal;
  /** @default 30,000 */
  readonly drainMs?: number;
  readonly maxHops?: number | undefined;
  readonly telemetry?: Telemetry;
}

/** A record is reported, so that the queue delivers it again, or in the end to its DLQ. */
interface Again {
  /** When its handler wants it again; undefined leaves that to the queue. */
  readonly due?: Deadline | undefined;
}

/**
 * Handles SQS records once each: the receipt and the handler's work commit together, and a duplicate is acknowledged
 * without running. What failed, or was not begun in time, is reported record by record; on a FIFO queue with all that
 * follows in its group, and all of it for the same time: SQS gives out nothing of a group of which a message is hidden.
 */
export async function consumeDirect<Payload, Tx, Outbox>(
  records: readonly DirectRecord[],
  options: DirectOptions<Payload, Tx, Outbox>,
): Promise<SqsBatchResponse> {
  const consumer = new DirectConsumer(options);
  const again = new Map<DirectRecord, Again>();
  await inParallel(groupsOf(records), options.parallelism ?? defaults.parallelism, async (group) => {
    let stopped: Again | undefined;
    for (const record of group) {
      stopped ??= await consumer.record(record);
      if (stopped) again.set(record, stopped);
    }
  });
  const delayed = [...again].flatMap(([record, { due }]) =>
    due === undefined ? [] : [{ record, seconds: Math.max(0, due.remainingMs() / 1000) }],
  );
  if (delayed.length > 0) await options.delay?.(delayed);
  // In the order of the batch, which is easier to read.
  const failures = records.filter((record) => again.has(record));
  return { batchItemFailures: failures.map(({ messageId }) => ({ itemIdentifier: messageId })) };
}

class DirectConsumer<Payload, Tx, Outbox> {
  readonly #options: DirectOptions<Payload, Tx, Outbox>;
  readonly #telemetry: Telemetry;
  readonly #marginMs: number;
  readonly #fullMs: number;
  #slowestMs = 0;

  constructor(options: DirectOptions<Payload, Tx, Outbox>) {
    this.#options = options;
    this.#telemetry = options.telemetry ?? silent;
    this.#marginMs = options.marginMs ?? 1_500;
    this.#fullMs = options.deadline.remainingMs() - this.#marginMs;
  }

  /** Undefined where it is done. Never rejects: one record's trouble is its own. */
  async record(record: DirectRecord): Promise<Again | undefined> {
    const { messageId } = record;
    const limitMs = this.#options.deadline.remainingMs() - this.#marginMs;
    if (
      this.#options.signal?.aborted ||
      limitMs <= 0 ||
      (limitMs <= this.#slowestMs && !this.#isFull(limitMs))
    ) {
      this.#telemetry.logger.info('a record was not begun, for want of time', { sqsMessageId: messageId });
      return {};
    }
    const read = readRecord(record, this.#options.mapping);
    if ('unreadable' in read) {
      this.#telemetry.count('Unreadable', 1);
      const { reason } = read.unreadable;
      this.#telemetry.logger.error('a record could not be read; the queue’s DLQ gets it in the end', {
        sqsMessageId: messageId,
        reason,
      });
      return {};
    }
    return await this.#message(record, read.message, limitMs);
  }

  /** A new invocation would give no more: waiting for one would be waiting for ever. */
  #isFull(limitMs: number): boolean {
    return limitMs >= this.#fullMs * 0.9;
  }

  async #message(record: DirectRecord, read: ReadMessage, limitMs: number): Promise<Again | undefined> {
    const { messageType } = read;
    const about = { messageId: read.id, messageType };
    const began = performance.now();
    const end = await this.#attempt(record, read, limitMs);
    const ms = performance.now() - began;
    if (end.kind === 'undone') {
      this.#telemetry.count('Duplicates', 1, messageType);
      this.#telemetry.logger.info('a message that was handled already came again', about);
      return undefined;
    }
    this.#telemetry.count('HandlerMs', ms, messageType);
    if (end.kind === 'committed') {
      this.#slowestMs = Math.max(this.#slowestMs, ms);
      this.#telemetry.count('Handled', 1, messageType);
      return undefined;
    }
    const { kind, reason, retryAfterSeconds } = end.failure;
    this.#telemetry.count(kind === 'failed' || kind === 'rejected' ? 'Retried' : 'Released', 1, messageType);
    this.#telemetry.logger.warn('a message was not handled, and will come again', {
      ...about,
      kind,
      reason,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    });
    // Counted from here: the rest of the batch takes its time.
    return retryAfterSeconds === undefined ? {} : { due: Deadline.in(retryAfterSeconds * 1000) };
  }

  async #attempt(record: DirectRecord, read: ReadMessage, limitMs: number): Promise<AttemptEnd<undefined>> {
    const { store, consumer, handler, bind, signal, drainMs, maxHops } = this.#options;
    const hops = hopsOf(read.headers);
    if (hops > (maxHops ?? defaults.maxHops)) {
      this.#telemetry.count('HopLimit', 1, read.messageType);
      const reason = `caused by a message ${hops} times over, which looks like a loop`;
      return { kind: 'failure', failure: { kind: 'rejected', reason } };
    }
    let committed: (() => Promise<void>) | undefined;
    const source = this.#options.source ?? read.headers[names.source] ?? '';
    const end = await transact<Tx, undefined>(
      {
        store,
        limitMs,
        fullTime: this.#isFull(limitMs),
        signal: signal ?? new AbortController().signal,
        drainMs: drainMs ?? defaults.drainSeconds * 1000,
      },
      async (begin, told) => {
        const transaction = await begin();
        const receipt = { consumer, source, externalMessageId: read.id };
        if (!(await store.receive(transaction, receipt))) return { commit: false, value: undefined };
        const message = await readMessage<Payload>(unread(record, read, source), this.#options);
        const bound = bind(transaction);
        committed = async () => await bound.committed?.();
        const logger = messageLogger(this.#telemetry.logger, message);
        const tools = { tx: bound.tx, outbox: bound.outbox, signal: told, logger };
        await callHandler(handler, message, read.headers, tools);
        return { commit: true, value: undefined };
      },
    );
    if (end.kind === 'committed') await committed?.();
    return end;
  }
}
