import { asClaimedInbox, type ClaimedInboxMessage } from '../../inbox-store.ts';
import { storedHeaders } from '../../stored-headers.ts';

/** A row as the driver gives it. */
export type Row = Readonly<Record<string, unknown>>;

/** A key of the inbox, and the lease on it that is to end. */
export interface KeyLease {
  readonly consumer: string;
  readonly source: string;
  readonly partitionKey: string;
  /** Null leaves whatever lease runs on the key as it is. */
  readonly token: string | null;
}

/** Makes a claimed message of `claimedColumns`. */
export function claimedFrom(row: Row): ClaimedInboxMessage {
  return asClaimedInbox({
    rowId: String(row['id']),
    lockToken: String(row['lock_token']),
    consumer: String(row['consumer']),
    source: String(row['source']),
    externalMessageId: String(row['external_message_id']),
    messageType: String(row['message_type']),
    payload: String(row['payload']),
    headers: storedHeaders(textOrNull(row['headers'])),
    correlationId: textOrNull(row['correlation_id']),
    partitionKey: textOrNull(row['partition_key']),
    attempt: Number(row['retry_count']),
    maxRetries: Number(row['max_retries']),
    createdAt: String(row['created_at']),
  });
}

/** The keys of keyed messages, with their leases. A worker holds one message per key, so none is there twice. */
export function keysOf(messages: readonly ClaimedInboxMessage[]): readonly KeyLease[] {
  return messages.flatMap(({ consumer, source, partitionKey, lockToken }) =>
    partitionKey === null ? [] : [{ consumer, source, partitionKey, token: lockToken }],
  );
}

/** Keys as the array parameters of `lockKeys` and `refreshKeys`. */
export function keyArrays(keys: readonly KeyLease[]): [string[], string[], string[]] {
  return [
    keys.map((key) => key.consumer),
    keys.map((key) => key.source),
    keys.map((key) => key.partitionKey),
  ];
}

function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}
