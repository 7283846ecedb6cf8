import { defaults } from '../delivery/defaults.ts';
import { silent, type Telemetry } from '../delivery/telemetry.ts';
import { UNREADABLE_TYPE } from '../message/envelope/names.ts';
import { type Mapping, readRecord, storedRecord } from '../message/envelope/read.ts';
import type { ClaimedInboxMessage, InboxStore, TransactionLimits } from '../store/inbox-store.ts';
import { refusesRow } from './database-errors.ts';
import { messageRow } from './ingest-rows.ts';

/** Where requeued records are, and how they are read this time. */
export interface RereadOptions {
  readonly store: Pick<InboxStore, 'ingest' | 'claim' | 'begin' | 'markProcessed' | 'markFailed'>;
  readonly consumer: string;
  /** The inbox whose records these are: another's are read by another mapping. */
  readonly source: string;
  readonly mapping?: Mapping | undefined;
  readonly maxRetries?: number | undefined;
  readonly maxHops?: number | undefined;
  /** Longer than the invocation may still take. */
  readonly leaseMs: number;
  readonly telemetry?: Telemetry;
}

const limits: TransactionLimits = { idleMs: 10_000, lockMs: 5_000, statementMs: 10_000 };

/**
 * Reads again what a person has requeued of the unreadable records, say after the mapping was mended. What is
 * understood now becomes a message under its own id, and the unreadable row is Processed; what is not ends in Failed
 * again. A crash between the two repeats the first, which then is a duplicate.
 * @returns the types of the messages added, to be woken
 */
export async function reread(options: RereadOptions): Promise<readonly string[]> {
  const { messages } = await options.store.claim({
    consumer: options.consumer,
    messageType: UNREADABLE_TYPE,
    source: options.source,
    limit: defaults.batchSize,
    maxBytes: defaults.claimBytes,
    leaseMs: options.leaseMs,
    onFailedKey: 'skip',
  });
  const types = new Set<string>();
  for (const message of messages) {
    const type = await rereadOne(message, options);
    if (type !== undefined) types.add(type);
  }
  return [...types];
}

async function rereadOne(message: ClaimedInboxMessage, options: RereadOptions): Promise<string | undefined> {
  const { store } = options;
  const record = storedRecord({
    id: message.externalMessageId,
    rawBody: message.payload,
    headers: message.headers,
  });
  const result = readRecord(record, options.mapping);
  if ('unreadable' in result) {
    const reason = `The record could not be read again: ${result.unreadable.reason}`;
    await store.markFailed([{ message, reason, retryInSeconds: undefined }], { onFailedKey: 'skip' });
    return undefined;
  }
  const row = messageRow(result.message, { ...options, source: message.source });
  try {
    const [stored] = await store.ingest([row]);
    const transaction = await store.begin(limits);
    const marked = await store.markProcessed(transaction, message).catch(() => undefined);
    await (marked ? transaction.commit() : transaction.rollback());
    return stored?.added && row.failedReason === null ? row.messageType : undefined;
  } catch (error) {
    // Anything else will pass: the lease runs out, and the row is claimed again.
    if (!refusesRow(error)) throw error;
    const { logger } = options.telemetry ?? silent;
    logger.warn('A record could be read again but not stored', {
      id: record.messageId,
      error: String(error),
    });
    const reason = `The record was read again, and the database refused it: ${String(error)}`;
    await store.markFailed([{ message, reason, retryInSeconds: undefined }], { onFailedKey: 'skip' });
    return undefined;
  }
}
