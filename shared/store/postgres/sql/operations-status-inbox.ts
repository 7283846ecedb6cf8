import type { Names } from '../names.ts';
import { inboxFailed } from './inbox-keys.ts';
import { age, iso, looseScan, scanLimit } from './operations-shared.ts';
import { paused } from './outbox-predicates.ts';

const ready = 'processed_at_utc IS NULL AND next_attempt_at_utc IS NULL AND partition_key IS NULL';
const waiting = 'processed_at_utc IS NULL AND next_attempt_at_utc IS NOT NULL AND partition_key IS NULL';
const keyed = 'processed_at_utc IS NULL AND partition_key IS NOT NULL';
const keysDue = 'NOT blocked AND next_attempt_at_utc IS NULL';
const keysWaiting = 'NOT blocked AND next_attempt_at_utc IS NOT NULL';
/** In nobody's hands; another program's rows end up in these indexes too, so the state is looked at. */
const free = '(state = 0 OR (state = 1 AND (locked_until_utc IS NULL OR locked_until_utc <= now())))';

/**
 * Lanes of the inbox that have anything to say. Types that stand only behind other types' messages of their keys are
 * found among the first keyed rows. `$1`: at most so many.
 */
export function inboxLanes(names: Names): string {
  const lane = ['consumer', 'message_type'];
  const head = ['consumer', 'head_type'];
  const scans = [
    { name: 'ready', table: names.inbox, columns: lane, where: ready },
    { name: 'waiting', table: names.inbox, columns: lane, where: waiting },
    { name: 'failed', table: names.inbox, columns: lane, where: inboxFailed },
    { name: 'heads', table: names.keys, columns: head, where: keysDue },
    { name: 'late_heads', table: names.keys, columns: head, where: keysWaiting },
  ];
  return `WITH RECURSIVE ${scans.map(looseScan).join(', ')}
SELECT consumer, message_type FROM (
  ${scans.map((scan) => `(SELECT consumer, ${scan.columns[1]} AS message_type FROM ${scan.name} LIMIT $1)`).join('\n  UNION ')}
  UNION SELECT consumer, message_type FROM (SELECT consumer, message_type FROM ${names.inbox} WHERE ${keyed} LIMIT ${scanLimit}) AS s
  UNION SELECT consumer, message_type FROM ${names.inboxLanes}
) AS lanes ORDER BY consumer, message_type LIMIT $1`;
}

/** Figures of the given lanes (`$1::text[]` consumers, `$2::text[]` types): bounded scans of partial indexes only. */
export function inboxStatus(names: Names): string {
  const rows = (predicate: string): string =>
    `${names.inbox} AS i WHERE i.consumer = l.consumer AND i.message_type = l.message_type AND ${predicate}`;
  const keys = (predicate: string): string =>
    `${names.keys} AS k WHERE k.consumer = l.consumer AND k.head_type = l.message_type AND ${predicate}`;
  const counted = (from: string): string => `
  SELECT count(*) FILTER (WHERE free) AS free, count(*) FILTER (WHERE free IS NOT TRUE) AS busy,
    count(*) FILTER (WHERE free AND claimed) AS expired
  FROM (${from} LIMIT ${scanLimit}) AS s`;
  // A row that another program ended without saying when is still in these indexes; maintenance mends that.
  const ofRows = (predicate: string): string =>
    counted(`SELECT ${free} AS free, i.state = 1 AS claimed FROM ${rows(`${predicate} AND i.state < 2`)}`);
  const ofKeys = (predicate: string): string =>
    counted(
      `SELECT k.locked_until_utc <= now() AS free, k.lock_token IS NOT NULL AS claimed FROM ${keys(predicate)}`,
    );
  return `
SELECT l.consumer, l.message_type, r.free AS ready_due, r.busy AS ready_busy, c.free AS come_due, c.busy AS come_busy,
  w.free + w.busy AS waiting, kr.free AS keys_due, kr.busy AS keys_busy, kc.free AS keys_come, kc.busy AS keys_come_busy,
  r.expired + c.expired + kr.expired + kc.expired AS expired,
  kw.free AS keys_waiting, kw.busy AS keys_waiting_busy, coalesce(h.held, 0) AS held, coalesce(h.seen, 0) AS held_seen, f.failed, f.blocked,
  ${age('least(a1.since, a2.since, a3.since, a4.since)')} AS oldest_due_seconds,
  floor(extract(epoch FROM now() - n.last_claim_at_utc))::float8 AS last_claim_seconds,
  coalesce(${paused('n')}, false) AS paused,
  n.paused_by, n.paused_reason, ${iso('n.paused_at_utc')} AS paused_at, ${iso('n.paused_until_utc')} AS paused_until
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS l(consumer, message_type, place)
LEFT JOIN ${names.inboxLanes} AS n ON n.consumer = l.consumer AND n.message_type = l.message_type
CROSS JOIN LATERAL (${ofRows(ready)}) AS r
CROSS JOIN LATERAL (${ofRows(`${waiting} AND i.next_attempt_at_utc <= now()`)}) AS c
CROSS JOIN LATERAL (${ofRows(`${waiting} AND i.next_attempt_at_utc > now()`)}) AS w
CROSS JOIN LATERAL (${ofKeys(keysDue)}) AS kr
CROSS JOIN LATERAL (${ofKeys(`${keysWaiting} AND k.next_attempt_at_utc <= now()`)}) AS kc
CROSS JOIN LATERAL (${ofKeys(`${keysWaiting} AND k.next_attempt_at_utc > now()`)}) AS kw
CROSS JOIN LATERAL (
  SELECT count(*) AS failed, count(*) FILTER (WHERE held) AS blocked FROM (
    SELECT i.held FROM ${rows(inboxFailed)} LIMIT ${scanLimit}
  ) AS s
) AS f
LEFT JOIN (
  -- What stands behind its key's head. One bounded scan for all lanes: keyed rows are ordered by key, not by type.
  SELECT i.consumer, i.message_type, count(*) FILTER (WHERE k.head_sequence IS NULL) AS held, max(i.total) AS seen FROM (
    SELECT s.*, count(*) OVER () AS total FROM (
      SELECT consumer, message_type, source, partition_key, sequence FROM ${names.inbox} WHERE ${keyed} LIMIT ${scanLimit}
    ) AS s
  ) AS i
  LEFT JOIN ${names.keys} AS k ON k.consumer = i.consumer AND k.source = i.source AND k.partition_key = i.partition_key
    AND k.head_sequence = i.sequence AND NOT k.blocked
  GROUP BY i.consumer, i.message_type
) AS h ON h.consumer = l.consumer AND h.message_type = l.message_type
LEFT JOIN LATERAL (SELECT i.created_at_utc AS since FROM ${rows(`${ready} AND ${free}`)} ORDER BY i.sequence LIMIT 1) AS a1 ON true
LEFT JOIN LATERAL (
  SELECT i.next_attempt_at_utc AS since FROM ${rows(`${waiting} AND ${free} AND i.next_attempt_at_utc <= now()`)}
  ORDER BY i.next_attempt_at_utc LIMIT 1
) AS a2 ON true
LEFT JOIN LATERAL (
  SELECT (SELECT i.created_at_utc FROM ${names.inbox} AS i WHERE i.processed_at_utc IS NULL AND i.partition_key IS NOT NULL
    AND i.consumer = k.consumer AND i.source = k.source AND i.partition_key = k.partition_key AND i.sequence = k.head_sequence) AS since
  FROM ${keys(`${keysDue} AND k.locked_until_utc <= now()`)} ORDER BY k.head_sequence LIMIT 1
) AS a3 ON true
LEFT JOIN LATERAL (
  SELECT k.next_attempt_at_utc AS since FROM ${keys(`${keysWaiting} AND k.locked_until_utc <= now() AND k.next_attempt_at_utc <= now()`)}
  ORDER BY k.next_attempt_at_utc LIMIT 1
) AS a4 ON true
ORDER BY l.place`;
}
