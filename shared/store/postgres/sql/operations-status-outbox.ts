import { bucketOf, type Names } from '../names.ts';
import { age, iso, looseScan, scanLimit } from './operations-shared.ts';
import { blocking, paused, ready, unclaimed, waiting } from './outbox-predicates.ts';

/**
 * Destinations that have anything to say: unfinished or Failed rows, a pause, an open breaker. Loose scans over the
 * partial indexes only, so that neither history nor a lane's length costs anything. `$1`: at most so many.
 */
export function outboxLanes(names: Names): string {
  const scans = [
    { name: 'ready', where: ready('t') },
    { name: 'waiting', where: waiting('t') },
    { name: 'blocking', where: blocking('t') },
    { name: 'failed', where: 't.state = 3' },
  ];
  return `WITH RECURSIVE ${scans
    .map((scan) => looseScan({ ...scan, table: names.outbox, columns: ['destination'] }))
    .join(', ')}
SELECT destination FROM (
  ${scans.map((scan) => `(SELECT destination FROM ${scan.name} LIMIT $1)`).join('\n  UNION ')}
  UNION SELECT destination FROM ${names.lanes} AS l WHERE l.open_until_utc IS NOT NULL OR ${paused('l')}
) AS lanes ORDER BY destination LIMIT $1`;
}

/**
 * Figures of the given lanes (`$1::text[]`). Each count is a bounded scan of one partial index; what has a time is
 * looked up bucket by bucket, so that a million rows delayed by an hour don't hide the five that have come.
 */
export function outboxStatus(names: Names): string {
  const bucket = bucketOf('o');
  const free = unclaimed('o');
  const of = (predicate: string): string =>
    `${names.outbox} AS o WHERE o.destination = l.destination AND ${predicate}`;
  const byBucket = (when: string): string => `
  SELECT ${free} AS free FROM generate_series(0, 63) AS b CROSS JOIN LATERAL (
    SELECT o.state, o.locked_until_utc FROM ${of(`${bucket} = b AND ${waiting('o')} AND o.next_attempt_at_utc ${when} now()`)} LIMIT ${scanLimit}
  ) AS o LIMIT ${scanLimit}`;
  return `
SELECT l.destination, r.free AS ready_due, r.busy AS ready_busy, c.free AS come_due, c.busy AS come_busy, w.waiting,
  h.held, h.seen AS held_seen, f.failed, f.blocked,
  (SELECT count(*) FROM ${names.leases} AS s WHERE s.destination = l.destination AND s.locked_until_utc > now()) AS leased_buckets,
  (SELECT count(*) FROM ${names.leases} AS s WHERE s.destination = l.destination AND s.lock_token IS NOT NULL AND s.locked_until_utc <= now()) AS expired,
  ${age('a.since')} AS oldest_due_seconds,
  n.failures, n.last_error,
  ${iso('n.opened_at_utc')} AS opened_at, ${iso('n.open_until_utc')} AS open_until,
  coalesce(${paused('n')}, false) AS paused,
  n.paused_by, n.paused_reason, ${iso('n.paused_at_utc')} AS paused_at, ${iso('n.paused_until_utc')} AS paused_until
FROM unnest($1::text[]) WITH ORDINALITY AS l(destination, place)
LEFT JOIN ${names.lanes} AS n ON n.destination = l.destination
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE free) AS free, count(*) FILTER (WHERE free IS NOT TRUE) AS busy FROM (
    SELECT ${free} AS free FROM ${of(ready('o'))} LIMIT ${scanLimit}
  ) AS s
) AS r
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE free) AS free, count(*) FILTER (WHERE free IS NOT TRUE) AS busy FROM (${byBucket('<=')}) AS s
) AS c
CROSS JOIN LATERAL (SELECT count(*) AS waiting FROM (${byBucket('>')}) AS s) AS w
CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE held AND state < 2) AS held, count(*) AS seen FROM (
    SELECT o.held, o.state FROM ${of(blocking('o'))} LIMIT ${scanLimit}
  ) AS s
) AS h
CROSS JOIN LATERAL (
  SELECT count(*) AS failed, count(*) FILTER (WHERE held) AS blocked FROM (
    SELECT o.held FROM ${of('o.state = 3')} LIMIT ${scanLimit}
  ) AS s
) AS f
CROSS JOIN LATERAL (
  SELECT min(least(first.created_at_utc, come.next_attempt_at_utc)) AS since FROM generate_series(0, 63) AS b
  LEFT JOIN LATERAL (
    SELECT o.created_at_utc FROM ${of(`${bucket} = b AND ${ready('o')} AND ${free}`)} ORDER BY o.sequence LIMIT 1
  ) AS first ON true
  LEFT JOIN LATERAL (
    SELECT o.next_attempt_at_utc FROM ${of(`${bucket} = b AND ${waiting('o')} AND ${free} AND o.next_attempt_at_utc <= now()`)}
    ORDER BY o.next_attempt_at_utc LIMIT 1
  ) AS come ON true
) AS a
ORDER BY l.place`;
}
