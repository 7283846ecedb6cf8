import type { Names } from '../names.ts';

/** Rows in hand stand at the front of their index; so many are looked through for one that isn't. */
const look = 1000;

/**
 * Seconds until something of the type may be claimed: `$1` consumer, `$2` type. Zero where something may be now, null where
 * nothing waits or where a person has paused the type without an end. Each part reads the front of one partial index.
 */
export function secondsToNextDue(names: Names): string {
  const row = 'consumer = $1 AND message_type = $2 AND processed_at_utc IS NULL AND partition_key IS NULL';
  const key = 'consumer = $1 AND head_type = $2 AND NOT blocked';
  // Another program's infinity is never due; to take it from an instant is an error before PostgreSQL 17.
  const seconds = (at: string): string =>
    `CASE WHEN ${at} < 'infinity' THEN extract(epoch FROM greatest(${at}, now()) - now())::float8 END`;
  const front = (columns: string, from: string, order: string): string =>
    `SELECT ${seconds('coalesce(at, now())')} AS s FROM (SELECT ${columns} AS at FROM ${from} ORDER BY ${order} LIMIT ${look}) AS f`;
  const next = (from: string): string =>
    `SELECT ${seconds('next_attempt_at_utc')} AS s FROM ${from} AND next_attempt_at_utc > now() ORDER BY next_attempt_at_utc LIMIT 1`;
  const leased = 'CASE WHEN state = 1 THEN locked_until_utc END';
  const inbox = `${names.inbox} WHERE ${row}`;
  const keys = `${names.keys} WHERE ${key}`;
  return `
SELECT CASE WHEN p.endless THEN NULL ELSE greatest(min(d.s), p.seconds) END AS seconds
FROM (
  (${front(leased, `${inbox} AND next_attempt_at_utc IS NULL`, 'sequence')})
  UNION ALL (${front(leased, `${inbox} AND next_attempt_at_utc <= now()`, 'next_attempt_at_utc')})
  UNION ALL (${next(inbox)})
  UNION ALL (${front('locked_until_utc', `${keys} AND next_attempt_at_utc IS NULL`, 'head_sequence')})
  UNION ALL (${front('locked_until_utc', `${keys} AND next_attempt_at_utc <= now()`, 'next_attempt_at_utc')})
  UNION ALL (${next(keys)})
) AS d
CROSS JOIN (
  SELECT coalesce(bool_or(isfinite(paused_until_utc) IS NOT TRUE), false) AS endless,
    coalesce(max(${seconds('paused_until_utc')}) FILTER (WHERE isfinite(paused_until_utc)), 0) AS seconds
  FROM ${names.inboxLanes} WHERE consumer = $1 AND message_type = $2 AND paused_at_utc IS NOT NULL
) AS p
GROUP BY p.endless, p.seconds`;
}
