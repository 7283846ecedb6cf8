import { decodeCursor, encodeCursor } from '../../operations/cursor.ts';
import type { RequestOf } from '../../operations/operations.ts';
import type { Box, LaneName } from '../../operations/requests.ts';
import type { FailedMessage, FailedResponse } from '../../operations/responses.ts';
import type { Row } from './rows.ts';

/** The lane of a request as values: destination, or consumer and type; nulls where none is named. */
export function laneValues({ box, lane }: RequestOf<'failed'>): readonly (string | null)[] {
  if (lane === null) return box === 'outbox' ? [null] : [null, null];
  return lane.box === 'outbox' ? [lane.destination] : [lane.consumer, lane.messageType];
}

/** The place that a request starts behind: lane and id; nulls at the beginning. */
export function placeValues({ box, after }: RequestOf<'failed'>): readonly (string | null)[] {
  const parts = box === 'outbox' ? 2 : 3;
  return after === null ? new Array<null>(parts).fill(null) : decodeCursor(after, parts);
}

/** One page of Failed rows, of which one more than asked for was read. Nothing of a row is parsed, so that no row can hide the others. */
export function failedPage({ box, limit }: RequestOf<'failed'>, rows: readonly Row[]): FailedResponse {
  const messages = rows.slice(0, limit).map((row) => failedMessage(box, row));
  const last = messages.at(-1);
  return {
    command: 'failed',
    messages,
    next: rows.length > limit && last !== undefined ? encodeCursor(placeOf(last)) : null,
  };
}

function placeOf({ lane, id }: FailedMessage): readonly string[] {
  return lane.box === 'outbox' ? [lane.destination, id] : [lane.consumer, lane.messageType, id];
}

function failedMessage(box: Box, row: Row): FailedMessage {
  return {
    id: row.text('id'),
    lane: laneOf(box, row),
    messageType: row.text('message_type'),
    source: row.textOrNull('source'),
    externalMessageId: row.textOrNull('external_message_id'),
    partitionKey: row.textOrNull('partition_key'),
    correlationId: row.textOrNull('correlation_id'),
    retryCount: row.number('retry_count'),
    maxRetries: row.number('max_retries'),
    createdAt: row.text('created_at'),
    failedAt: row.textOrNull('ended_at'),
    blocksKey: row.flag('blocks_key'),
    lastError: row.textOrNull('last_error'),
  };
}

/** The lane of a row that has its box's columns. */
export function laneOf(box: Box, row: Row): LaneName {
  return box === 'outbox'
    ? { box, destination: row.text('destination') }
    : { box, consumer: row.text('consumer'), messageType: row.text('message_type') };
}
