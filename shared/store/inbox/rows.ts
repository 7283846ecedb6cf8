import { asClaimedInbox, type ClaimedInboxMessage } from '../inbox-store.ts';
import { storedHeaders } from '../stored-headers.ts';
import { type DriverRow, textOrNull } from '../values.ts';

/** Makes a claimed message of a row that a claim answered. */
export function claimedFrom(row: DriverRow): ClaimedInboxMessage {
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
