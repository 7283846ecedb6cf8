import type { Headers } from '../../../message/message.ts';
import { asClaimed, type ClaimedOutboxMessage } from '../../outbox-store.ts';

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

const none: Headers = Object.freeze({});

function headersOf(text: string | null): { readonly headers: Headers; readonly replay: number } {
  if (text === null) return { headers: none, replay: 0 };
  const stored: unknown = JSON.parse(text, keepNumbers);
  // Another program may have put anything there; what isn't an object has no names to send.
  if (typeof stored !== 'object' || stored === null || Array.isArray(stored))
    return { headers: none, replay: 0 };
  const { [REPLAY]: replay, ...others } = stored as Record<string, unknown>;
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(others)) {
    if (value !== null) headers[name] = typeof value === 'string' ? value : JSON.stringify(value);
  }
  return { headers, replay: replay === undefined ? 0 : Number(replay) || 0 };
}

/** A number keeps its digits: as a double, a long id would lose some. */
function keepNumbers(
  this: unknown,
  _key: string,
  value: unknown,
  context?: { readonly source?: string },
): unknown {
  return typeof value === 'number' ? (context?.source ?? value) : value;
}
