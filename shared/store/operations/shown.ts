import { nesting } from '../../message/serialise.ts';
import type { Box } from '../../operations/requests.ts';
import type { ShownMessage } from '../../operations/responses.ts';
import { laneOf } from './failed-page.ts';
import type { Row } from './rows.ts';

const stateNames = ['Pending', 'Processing', 'Processed', 'Failed', 'Discarded'] as const;

/** A message as it is shown, out of its row and what stands around it. */
export function shown(box: Box, row: Row): ShownMessage {
  const state = row.number('state');
  const payload = row.textOrNull('payload');
  return {
    box,
    id: row.text('id'),
    lane: laneOf(box, row),
    state: stateNames[state] ?? `unknown state ${state}`,
    situation: box === 'outbox' ? outboxSituation(state, row) : inboxSituation(state, row),
    messageType: row.text('message_type'),
    source: box === 'inbox' ? row.text('source') : null,
    externalMessageId: box === 'inbox' ? row.text('external_message_id') : null,
    partitionKey: row.textOrNull('partition_key'),
    sequence: row.textOrNull('sequence'),
    bucket: box === 'outbox' ? row.number('bucket') : null,
    correlationId: row.textOrNull('correlation_id'),
    headers: shownHeaders(row.textOrNull('headers')),
    retryCount: row.number('retry_count'),
    maxRetries: row.number('max_retries'),
    createdAt: row.text('created_at'),
    nextAttemptAt: row.textOrNull('next_attempt_at'),
    lockedUntil: row.textOrNull('locked_until'),
    endedAt: row.textOrNull('ended_at'),
    lastError: row.textOrNull('last_error'),
    payloadBytes: row.number('payload_bytes'),
    ...(payload === null ? {} : { payload }),
  };
}

function outboxSituation(state: number, row: Row): string {
  if (state === 2) return 'published';
  if (state === 4) return 'discarded';
  if (state === 3) return failedSituation(row);
  if (row.flag('held')) return 'held behind an earlier message of its key';
  if (row.flag('running')) return 'in the hands of another program, until its lease runs out';
  if (row.flag('waits')) return 'waiting for its next attempt';
  if (row.flag('paused'))
    return `due, but its destination is paused by ${row.textOrNull('paused_by') ?? '?'}`;
  if (row.flag('open')) return 'due, but its destination was unavailable; a probe will find out';
  if (row.flag('leased')) return 'due, in a bucket that a relay holds';
  return 'due';
}

function inboxSituation(state: number, row: Row): string {
  if (state === 2) return 'handled';
  if (state === 4) return 'discarded';
  if (state === 3) return failedSituation(row);
  if (row.flag('running')) return 'with a handler, until it ends or its lease runs out';
  if (row.textOrNull('partition_key') !== null) {
    if (!row.flag('keyed')) return 'stranded: its key has no row; maintenance mends that';
    if (row.flag('blocked')) return 'held: its key waits for a person to decide about a Failed message';
    if (!row.flag('head')) return 'held behind an earlier message of its key';
    if (row.flag('leased')) return 'next of its key, whose lease still runs';
  }
  if (row.flag('waits')) return 'waiting for its next attempt';
  if (row.flag('paused')) return `due, but its type is paused by ${row.textOrNull('paused_by') ?? '?'}`;
  if (row.flag('unclaimed')) return 'due, but no handler has ever asked for this type';
  return 'due';
}

function failedSituation(row: Row): string {
  return row.flag('held') ? 'failed for good; its key waits for a person' : 'failed for good';
}

/** Levels of another program's headers that are shown as JSON; what is nested deeper would overflow whoever writes the answer. */
const shownLevels = 100;

/** Headers as JSON, or as their text where they are too deep, or no JSON. */
function shownHeaders(text: string | null): unknown {
  if (text === null || nesting(text) > shownLevels) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
