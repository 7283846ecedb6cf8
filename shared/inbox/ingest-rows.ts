import { defaults } from '../delivery/defaults.ts';
import { hopsOf, UNREADABLE_TYPE } from '../message/envelope/names.ts';
import type { Unreadable } from '../message/envelope/read.ts';
import type { ReadMessage } from '../message/envelope/read-message.ts';
import type { NewInboxRow } from '../store/inbox-store.ts';

/** What decides how a record becomes a row. */
export interface RowOptions {
  /** Whose copies these are; the empty text is the default consumer. */
  readonly consumer: string;
  /** The source that identifies messages in this inbox, whatever the wire says. */
  readonly source: string;
  /** @default 5 */
  readonly maxRetries?: number | undefined;
  /** Messages caused by messages so many times over are a loop. @default 64 */
  readonly maxHops?: number | undefined;
}

/** The row of a message that was understood. */
export function messageRow({ id, ...message }: ReadMessage, options: RowOptions): NewInboxRow {
  return {
    consumer: options.consumer,
    source: options.source,
    externalMessageId: id,
    ...message,
    maxRetries: options.maxRetries ?? defaults.inboxMaxRetries,
    failedReason: loopReason(hopsOf(message.headers), options.maxHops ?? defaults.maxHops),
  };
}

/** The row under which an unreadable record is kept, Failed from the start. */
export function unreadableRow(kept: Unreadable, options: RowOptions): NewInboxRow {
  return {
    consumer: options.consumer,
    source: options.source,
    externalMessageId: kept.id,
    messageType: UNREADABLE_TYPE,
    payload: kept.rawBody,
    headers: kept.headers,
    correlationId: null,
    partitionKey: null,
    maxRetries: options.maxRetries ?? defaults.inboxMaxRetries,
    failedReason: `The record could not be read: ${kept.reason}`,
  };
}

function loopReason(hops: number, limit: number): string | null {
  if (hops <= limit) return null;
  return `Caused by a message ${hops} times over, which looks like a loop (limit ${limit})`;
}
