import type { Deadline } from '../delivery/deadline.ts';
import { defaults } from '../delivery/defaults.ts';
import { inParallel } from '../delivery/parallel.ts';
import { silent, type Telemetry } from '../delivery/telemetry.ts';
import { hopsOf, names } from '../message/envelope/names.ts';
import { type Mapping, readRecord, type SqsRecord } from '../message/envelope/read.ts';
import type { ReadMessage } from '../message/envelope/read-message.ts';
import type { InboxStore } from '../store/inbox-store.ts';
import { callHandler, type Handling, messageLogger, readMessage } from './context.ts';
import type { SqsBatchResponse } from './ingest.ts';
import { type AttemptEnd, transact } from './transact.ts';

/** An SQS record, with what Lambda tells about its deliveries. */
export interface DirectRecord extends SqsRecord {
  readonly attributes?: {
    readonly MessageGroupId?: string | undefined;
    readonly ApproximateReceiveCount?: string | undefined;
    readonly SentTimestamp?: string | undefined;
  };
}

/** What consumes messages straight from a queue. */
export interface DirectOptions<Payload, Tx, Outbox> extends Handling<Payload, Tx, Outbox> {
  readonly store: Pick<InboxStore<Tx>, 'begin' | 'reachable' | 'receive'>;
  /** Whose receipts these are: each consumer of a message handles it once. */
  readonly consumer: string;
  /** The source that identifies messages here. @default what the sender calls itself */
  readonly source?: string | undefined;
  /** For records in an envelope of your own. */
  readonly mapping?: Mapping | undefined;
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

/** `duplicate`: handled before. `again`: reported, so that the queue delivers it again, or in the end to its DLQ. */
type RecordEnd = 'handled' | 'duplicate' | 'again';

/**
 * Handles SQS records once each: the receipt and the handler's work commit together, and a duplicate is acknowledged
 * without running. What failed, or was not begun in time, is reported record by record; on a FIFO queue with all that
 * follows in its group.
 */
export async function consumeDirect<Payload, Tx, Outbox>(
  records: readonly DirectRecord[],
  options: DirectOptions<Payload, Tx, Outbox>,
): Promise<SqsBatchResponse> {
  const consumer = new DirectConsumer(options);
  const again = new Set<string>();
  await inParallel(groupsOf(records), options.parallelism ?? defaults.parallelism, async (group) => {
    let stopped = false;
    for (const record of group) {
      if (!stopped) stopped = (await consumer.record(record)) === 'again';
      if (stopped) again.add(record.messageId);
    }
  });
  // In the order of the batch, which is easier to read.
  const failures = records.filter(({ messageId }) => again.has(messageId));
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

  /** Never rejects: one record's trouble is its own. */
  async record(record: DirectRecord): Promise<RecordEnd> {
    const { messageId } = record;
    const limitMs = this.#options.deadline.remainingMs() - this.#marginMs;
    if (
      this.#options.signal?.aborted ||
      limitMs <= 0 ||
      (limitMs <= this.#slowestMs && !this.#isFull(limitMs))
    ) {
      this.#telemetry.logger.info('a record was not begun, for want of time', { sqsMessageId: messageId });
      return 'again';
    }
    const read = readRecord(record, this.#options.mapping);
    if ('unreadable' in read) {
      this.#telemetry.count('Unreadable', 1);
      const { reason } = read.unreadable;
      this.#telemetry.logger.error('a record could not be read; the queue’s DLQ gets it in the end', {
        sqsMessageId: messageId,
        reason,
      });
      return 'again';
    }
    return await this.#message(record, read.message, limitMs);
  }

  /** A new invocation would give no more: waiting for one would be waiting for ever. */
  #isFull(limitMs: number): boolean {
    return limitMs >= this.#fullMs * 0.9;
  }

  async #message(record: DirectRecord, read: ReadMessage, limitMs: number): Promise<RecordEnd> {
    const { messageType } = read;
    const about = { messageId: read.id, messageType };
    const began = performance.now();
    const end = await this.#attempt(record, read, limitMs);
    const ms = performance.now() - began;
    if (end.kind === 'undone') {
      this.#telemetry.count('Duplicates', 1, messageType);
      this.#telemetry.logger.info('a message that was handled already came again', about);
      return 'duplicate';
    }
    this.#telemetry.count('HandlerMs', ms, messageType);
    if (end.kind === 'committed') {
      this.#slowestMs = Math.max(this.#slowestMs, ms);
      this.#telemetry.count('Handled', 1, messageType);
      return 'handled';
    }
    const { kind, reason } = end.failure;
    this.#telemetry.count(kind === 'failed' || kind === 'rejected' ? 'Retried' : 'Released', 1, messageType);
    this.#telemetry.logger.warn('a message was not handled, and will come again', { ...about, kind, reason });
    return 'again';
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

/** On a FIFO queue a group is handled in order; elsewhere each record stands for itself. */
function groupsOf(records: readonly DirectRecord[]): readonly (readonly DirectRecord[])[] {
  const groups = new Map<string, DirectRecord[]>();
  for (const record of records) {
    const group = record.attributes?.MessageGroupId;
    const fifo = record.eventSourceARN?.endsWith('.fifo') ?? group !== undefined;
    const name = fifo ? `group ${group ?? ''}` : `record ${record.messageId}`;
    const list = groups.get(name);
    if (list) list.push(record);
    else groups.set(name, [record]);
  }
  return [...groups.values()];
}

/** There is no row of ours here: attempt and instant are the queue's. */
function unread(record: DirectRecord, read: ReadMessage, source: string) {
  const { ApproximateReceiveCount: receives, SentTimestamp: sent } = record.attributes ?? {};
  const attempt = Number(receives);
  const sentMs = Number(sent);
  return {
    id: read.id,
    source,
    messageType: read.messageType,
    headers: read.headers,
    correlationId: read.correlationId ?? undefined,
    partitionKey: read.partitionKey ?? undefined,
    attempt: Number.isSafeInteger(attempt) && attempt > 0 ? attempt : 1,
    createdAt: new Date(Number.isFinite(sentMs) && sentMs > 0 ? sentMs : Date.now()).toISOString(),
    text: read.payload,
  };
}
