import { countLimit } from '../../operations/limits.ts';
import type { Count, LaneStatus, Pause } from '../../operations/responses.ts';
import type { Row } from './rows.ts';

/** A lane of the outbox, out of its row of figures. */
export function outboxLane(row: Row): LaneStatus {
  const pause = pauseOf(row);
  const openUntil = row.textOrNull('open_until');
  const breaker =
    openUntil === null
      ? null
      : {
          failures: row.number('failures'),
          since: row.textOrNull('opened_at'),
          until: openUntil,
          lastError: row.textOrNull('last_error'),
        };
  return {
    lane: { box: 'outbox', destination: row.text('destination') },
    state: pause !== null ? 'paused' : breaker !== null ? 'open' : 'ready',
    pause,
    breaker,
    due: sum(row, ['ready_due', 'come_due'], ['ready_busy', 'come_busy']),
    oldestDueSeconds: row.numberOrNull('oldest_due_seconds'),
    waiting: sum(row, ['waiting']),
    held: seen(row),
    leased: sum(row, ['ready_busy', 'come_busy'], ['ready_due', 'come_due']),
    leasedBuckets: row.number('leased_buckets'),
    expiredLeases: sum(row, ['expired']),
    failed: sum(row, ['failed']),
    blockedKeys: sum(row, ['blocked'], ['failed']),
    lastClaimSeconds: null,
  };
}

/** A lane of the inbox, out of its row of figures. */
export function inboxLane(row: Row): LaneStatus {
  const pause = pauseOf(row);
  const due = ['ready_due', 'come_due', 'keys_due', 'keys_come'];
  const busy = ['ready_busy', 'come_busy', 'keys_busy', 'keys_come_busy', 'keys_waiting_busy'];
  return {
    lane: { box: 'inbox', consumer: row.text('consumer'), messageType: row.text('message_type') },
    state: pause !== null ? 'paused' : 'ready',
    pause,
    breaker: null,
    due: sum(row, due, busy),
    oldestDueSeconds: row.numberOrNull('oldest_due_seconds'),
    waiting: sum(row, ['waiting', 'keys_waiting']),
    held: seen(row),
    leased: sum(row, busy, due),
    leasedBuckets: 0,
    expiredLeases: sum(row, ['expired'], due),
    failed: sum(row, ['failed']),
    blockedKeys: sum(row, ['blocked'], ['failed']),
    lastClaimSeconds: row.numberOrNull('last_claim_seconds'),
  };
}

function pauseOf(row: Row): Pause | null {
  if (!row.flag('paused')) return null;
  return {
    by: row.textOrNull('paused_by'),
    reason: row.textOrNull('paused_reason'),
    since: row.text('paused_at'),
    until: row.textOrNull('paused_until'),
  };
}

/** A sum of counts; there may be more where the scan that they come from, the other columns included, stopped. */
function sum(row: Row, columns: readonly string[], beside: readonly string[] = []): Count {
  const total = add(row, columns);
  return { count: Math.min(total, countLimit), more: total + add(row, beside) > countLimit };
}

function seen(row: Row): Count {
  return {
    count: Math.min(row.number('held'), countLimit),
    more: row.number('held_seen') > countLimit,
  };
}

function add(row: Row, columns: readonly string[]): number {
  return columns.reduce((total, column) => total + row.number(column), 0);
}
