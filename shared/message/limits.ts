import type { OutboxRow } from './message.ts';

/** Lengths of the columns, in characters. */
export const columns = {
  destination: 300,
  messageType: 200,
  correlationId: 200,
  partitionKey: 200,
  source: 200,
  externalMessageId: 300,
  consumer: 200,
} as const;

/** Headers of these names are Relaybox's own; applications can't set them. */
export const reservedHeaderPrefix = 'relaybox-';

/** What SQS takes: a message's body and attributes together, 1 MiB. */
export const sqsMessageBytes = 1_048_576;

/** What EventBridge takes: "1 MB" for a call, read as the smaller of its two meanings, less a margin for what it may count besides. */
export const eventBridgeEntryBytes = 1_000_000 - 2_000;

/** The longest `detail-type` of EventBridge, in characters. */
export const eventBridgeDetailType = 128;

/** Levels of JSON that EventBridge takes; the envelope around the payload is one. */
export const eventBridgeNesting = 1000 - 1;

/** The longest delay: ten years. What a timestamp can't hold would abort the caller's transaction. */
export const maxDelaySeconds = 10 * 366 * 86_400;

/** What a producer knows of a destination, so that it can refuse what could never arrive there. */
export interface DestinationLimits {
  readonly type: 'sqs' | 'eventbridge';
  /** A queue whose own maximum message size is smaller than the transport's. */
  readonly maxBytes?: number;
}

/** Logical destination names to what is known of them. */
export type DestinationTable = Readonly<Record<string, DestinationLimits>>;

// The relay adds these; the producer doesn't know them yet, so their longest is set aside.
const room = { source: 256, traceparent: 64, hops: 4, time: 14 } as const;
// Name, type (`String`) and value of an attribute count.
const attributeBytes = (name: string, valueBytes: number): number => name.length + 6 + valueBytes;

/** An upper bound of the bytes that SQS will count: body, attributes, their names and types. */
export function sqsBytes(row: OutboxRow): number {
  const attributes = [
    attributeBytes('relaybox-id', 36),
    attributeBytes('relaybox-type', bytes(row.messageType)),
    attributeBytes('relaybox-source', room.source),
    attributeBytes('relaybox-correlation-id', bytes(row.correlationId)),
    attributeBytes('relaybox-partition-key', bytes(row.partitionKey)),
    attributeBytes('traceparent', room.traceparent),
    attributeBytes('relaybox-hops', room.hops),
    attributeBytes('relaybox-headers', headerBytes(row)),
  ];
  return attributes.reduce((sum, each) => sum + each, bytes(row.payload));
}

/** An upper bound of the bytes that EventBridge will count: time, source, detail-type, and the detail around the payload. */
export function eventBridgeBytes(row: OutboxRow): number {
  const metadata = JSON.stringify({
    id: row.id,
    type: row.messageType,
    source: '',
    correlationId: row.correlationId,
    partitionKey: row.partitionKey,
    traceparent: '',
    hops: 0,
    encoding: 'text',
    headers: {},
  });
  const detail = bytes('{"metadata":,"data":}') + bytes(metadata) + headerBytes(row) + bytes(row.payload);
  const reserved = room.time + 2 * room.source + room.traceparent + room.hops;
  return reserved + bytes(row.messageType) + detail;
}

function headerBytes(row: OutboxRow): number {
  if (row.headers === null) return 2;
  const json = JSON.stringify(row.headers);
  // Two characters that SQS refuses are escaped on the wire: six bytes instead of three.
  return bytes(json) + 3 * (json.match(/[\uFFFE\uFFFF]/g)?.length ?? 0);
}

function bytes(text: string | null): number {
  return text === null ? 0 : Buffer.byteLength(text);
}
