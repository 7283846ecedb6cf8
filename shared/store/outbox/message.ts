import type { Headers } from '../../message/message.ts';
import { asClaimed, type ClaimedOutboxMessage } from '../outbox-store.ts';
import { storedHeaders } from '../stored-headers.ts';

/** How often a person has requeued a message; kept in its headers, and not sent on. */
const REPLAY = 'relaybox-replay';

/** On a claimed message whose key has rows in the way: its end may let followers go. A symbol survives a copy of the message. */
const inTheWay: unique symbol = Symbol('a row of its key is in the way');

/** Whether the end of this message may let held followers go. */
export function mayHaveFollowers(message: ClaimedOutboxMessage): boolean {
  return inTheWay in message;
}

/** Makes a claimed message of a row that `readSql` answered. */
export function claimedMessage(destination: string, row: Record<string, unknown>): ClaimedOutboxMessage {
  const { replay, headers } = headersOf(row['headers'] as string | null);
  const message = asClaimed({
    id: row['id'] as string,
    destination,
    bucket: row['bucket'] as number,
    sequence: row['sequence'] as string | null,
    messageType: row['message_type'] as string,
    payload: row['payload'] as string,
    payloadBytes: row['bytes'] as number,
    headers,
    correlationId: row['correlation_id'] as string | null,
    partitionKey: row['partition_key'] as string | null,
    retryCount: row['retry_count'] as number,
    maxRetries: row['max_retries'] as number,
    replay,
  });
  return row['blocked'] === null ? message : Object.assign(message, { [inTheWay]: true });
}

function headersOf(text: string | null): { readonly headers: Headers; readonly replay: number } {
  const { [REPLAY]: replay, ...headers } = storedHeaders(text);
  return { headers, replay: Number(replay) || 0 };
}
