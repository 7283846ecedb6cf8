import type { SqsRecord } from '../message/envelope/read.ts';
import type { ReadMessage } from '../message/envelope/read-message.ts';

/** An SQS record, with what Lambda tells about its deliveries. */
export interface DirectRecord extends SqsRecord {
  /** Names this delivery of the message to SQS. */
  readonly receiptHandle?: string | undefined;
  readonly attributes?: {
    readonly MessageGroupId?: string | undefined;
    readonly ApproximateReceiveCount?: string | undefined;
    readonly SentTimestamp?: string | undefined;
  };
}

/** A record that is to come again after a time of its own, instead of the queue's. */
export interface DelayedRecord {
  readonly record: DirectRecord;
  /** From now, 0 or more. */
  readonly seconds: number;
}

/** On a FIFO queue a group is handled in order; elsewhere each record stands for itself. */
export function groupsOf(records: readonly DirectRecord[]): readonly (readonly DirectRecord[])[] {
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

/** The message as a handler gets it, its payload still text. There is no row of ours here: attempt and instant are the queue's. */
export function unread(record: DirectRecord, read: ReadMessage, source: string) {
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
