import { bucketOf, type Names } from '../names.ts';
import { paused, ready, someCome, someReady, waiting } from './outbox-predicates.ts';

/**
 * Lanes with due rows, and for each whether it is ready or to be probed. Paused lanes, and open ones whose pause or
 * probe runs, are left out. The lanes' rows are not read: each step of the loose scans is one descent of an index.
 */
export function dueLanesSql(names: Names): string {
  return `
WITH RECURSIVE ${readyLanes(names)}, ${waitingBuckets(names)}, due AS (
  SELECT r.destination FROM ready_lanes AS r WHERE ${someReady(names, 'o.destination = r.destination')}
  UNION
  SELECT w.destination FROM waiting_buckets AS w
  WHERE w.at <= now() AND ${someCome(names, `o.destination = w.destination AND ${bucketOf('o')} = w.bucket`)}
)
SELECT due.destination, CASE WHEN l.open_until_utc IS NULL THEN 'ready' ELSE 'probe' END AS state
FROM due LEFT JOIN ${names.lanes} AS l USING (destination)
WHERE l.destination IS NULL OR (NOT ${paused('l')} AND (l.open_until_utc IS NULL
  OR (l.open_until_utc <= now() AND (l.probe_until_utc IS NULL OR l.probe_until_utc <= now()))))
ORDER BY due.destination`;
}

/**
 * Seconds until something comes due that isn't yet: a waiting row, a bucket in another's hands, another program's claim,
 * the end of a lane's pause. What waits behind two of these counts with the later one.
 */
export function secondsToNextDueSql(names: Names): string {
  return `
WITH RECURSIVE ${readyLanes(names)}, ${waitingBuckets(names)}, closed AS (
  SELECT l.destination, greatest(l.open_until_utc, l.probe_until_utc,
    CASE WHEN ${paused('l')} THEN coalesce(l.paused_until_utc, 'infinity') END) AS until
  FROM ${names.lanes} AS l WHERE l.open_until_utc IS NOT NULL OR ${paused('l')}
), moments AS (
  SELECT w.destination, greatest(w.at, b.locked_until_utc) AS at
  FROM waiting_buckets AS w LEFT JOIN ${names.leases} AS b ON b.destination = w.destination AND b.bucket = w.bucket
  UNION ALL
  SELECT b.destination, b.locked_until_utc FROM ${names.leases} AS b
  WHERE b.locked_until_utc > now()
    AND ${someReady(names, `o.destination = b.destination AND ${bucketOf('o')} = b.bucket`)}
  UNION ALL
  SELECT o.destination, o.locked_until_utc FROM ${names.outbox} AS o WHERE o.state = 1 AND o.locked_until_utc > now()
  UNION ALL
  SELECT r.destination, c.until FROM ready_lanes AS r JOIN closed AS c USING (destination)
)
SELECT extract(epoch FROM min(greatest(m.at, c.until, now())) - now())::float8 AS seconds
FROM moments AS m LEFT JOIN closed AS c USING (destination)
WHERE isfinite(greatest(m.at, c.until))`;
}

/** Lanes that have rows which are due at once. */
function readyLanes(names: Names): string {
  const from = `FROM ${names.outbox} AS o WHERE ${ready('o')}`;
  return `ready_lanes AS (
  (SELECT o.destination ${from} ORDER BY o.destination LIMIT 1)
  UNION ALL
  SELECT n.destination FROM ready_lanes AS last CROSS JOIN LATERAL (
    SELECT o.destination ${from} AND o.destination > last.destination ORDER BY o.destination LIMIT 1
  ) AS n
)`;
}

/** Lanes' buckets that have waiting rows, each with the first one's time: it is the first entry of its bucket. */
function waitingBuckets(names: Names): string {
  const select = `SELECT o.destination, ${bucketOf('o')} AS bucket, o.next_attempt_at_utc AS at FROM ${names.outbox} AS o WHERE ${waiting('o')}`;
  const first = `ORDER BY o.destination, ${bucketOf('o')}, o.next_attempt_at_utc LIMIT 1`;
  return `waiting_buckets AS (
  (${select} ${first})
  UNION ALL
  SELECT n.* FROM waiting_buckets AS last CROSS JOIN LATERAL (
    ${select} AND (o.destination, ${bucketOf('o')}) > (last.destination, last.bucket) ${first}
  ) AS n
)`;
}
