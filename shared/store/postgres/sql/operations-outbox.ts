import { bucketOf, type Names } from '../names.ts';
import { blocking } from './outbox-predicates.ts';

/** Held followers that one statement lets go; the relay's settles let the next ones go. */
export const releaseLimit = 200;

/**
 * The fence of every write below: the buckets of lane `$1` that token `$2` still holds, their lease rows locked until
 * the statement's transaction ends, so that no relay can take them meanwhile.
 */
const fence = (names: Names): string => `fence AS MATERIALIZED (
  SELECT bucket FROM ${names.leases}
  WHERE destination = $1 AND lock_token = $2 AND locked_until_utc > clock_timestamp() FOR UPDATE
)`;

/** What a command needs to know of rows, by id (`$1::uuid[]`). */
export function locateOutbox(names: Names): string {
  return `
SELECT id, destination, ${bucketOf()}::int AS bucket, state, partition_key,
  coalesce(state = 1 AND locked_until_utc > now(), false) AS running
FROM ${names.outbox} WHERE id = ANY ($1::uuid[])`;
}

/**
 * Failed → Pending, retries anew. Idempotent by the state it expects. The replay's number makes a new deduplication id
 * on FIFO queues, where the broker would swallow the message otherwise. `last_error` stays: it says what this was about.
 * Its held followers stay held: the relay lets them go when it settles this one. `$1` lane, `$2` token, `$3` ids.
 */
export function requeueOutbox(names: Names): string {
  const headers = `CASE WHEN coalesce(jsonb_typeof(o.headers), 'null') IN ('null', 'object') THEN
    CASE WHEN jsonb_typeof(o.headers) = 'object' THEN o.headers ELSE '{}' END || jsonb_build_object('relaybox-replay', (
      CASE WHEN o.headers->>'relaybox-replay' ~ '^[0-9]{1,8}$' THEN (o.headers->>'relaybox-replay')::int ELSE 0 END + 1)::text)
    ELSE o.headers END`;
  return `
WITH ${fence(names)}
UPDATE ${names.outbox} AS o
SET state = 0, held = false, retry_count = 0, next_attempt_at_utc = NULL, locked_until_utc = NULL,
  processed_at_utc = NULL, headers = ${headers}
WHERE o.id = ANY ($3::uuid[]) AND o.destination = $1 AND o.state = 3
  AND ${bucketOf('o')} IN (SELECT bucket FROM fence)
RETURNING o.id`;
}

/** Any state but an ended one → Discarded, unless another program's claim on it runs. `$4` reason. */
export function discardOutbox(names: Names): string {
  return `
WITH ${fence(names)}
UPDATE ${names.outbox} AS o
SET state = 4, held = false, next_attempt_at_utc = NULL, locked_until_utc = NULL,
  processed_at_utc = clock_timestamp(), last_error = $4
WHERE o.id = ANY ($3::uuid[]) AND o.destination = $1
  AND (o.state IN (0, 3) OR (o.state = 1 AND (o.locked_until_utc IS NULL OR o.locked_until_utc <= clock_timestamp())))
  AND ${bucketOf('o')} IN (SELECT bucket FROM fence)
RETURNING o.id, o.partition_key`;
}

/**
 * Lets held rows of the keys `$3::text[]` go, lowest first, up to the first row that waits or blocks. In a statement of
 * its own, since it must see what became of the row before them.
 */
export function releaseFollowers(names: Names): string {
  return `
WITH ${fence(names)}, followers AS (
  SELECT f.id FROM unnest($3::text[]) AS k(partition_key) CROSS JOIN LATERAL (
    SELECT id, bool_and(held AND state < 2) OVER (ORDER BY sequence NULLS LAST, id) AS free FROM (
      SELECT id, sequence, held, state FROM ${names.outbox} AS o
      WHERE o.destination = $1 AND o.partition_key = k.partition_key AND ${blocking('o')}
        AND hashtextextended(k.partition_key, 0) & 63 IN (SELECT bucket FROM fence)
      ORDER BY o.sequence LIMIT ${releaseLimit}
    ) AS lowest
  ) AS f WHERE f.free
)
UPDATE ${names.outbox} AS o SET held = false FROM followers AS f
WHERE o.id = f.id AND o.held AND o.state < 2
RETURNING o.id`;
}

/**
 * Keys whose first row in the way is itself held, so that nothing will ever let it go: a page of the keys behind the
 * place (`$1` destination, `$2` key), found by a loose scan of at most `$3` keys. `last_*` is the place for the next page.
 * A key whose head is just being published looks the same; its bucket is leased then, and it is left alone.
 */
export function orphanedKeys(names: Names): string {
  const columns = 'destination, partition_key, held, state';
  return `
WITH RECURSIVE heads AS (
  (SELECT ${columns} FROM ${names.outbox} AS o
   WHERE ${blocking('o')} AND (destination, partition_key) > ($1::text, $2::text)
   ORDER BY destination, partition_key, sequence LIMIT 1)
  UNION ALL
  SELECT n.* FROM heads AS h CROSS JOIN LATERAL (
    SELECT ${columns} FROM ${names.outbox} AS o
    WHERE ${blocking('o')} AND (o.destination, o.partition_key) > (h.destination, h.partition_key)
    ORDER BY o.destination, o.partition_key, o.sequence LIMIT 1
  ) AS n
), page AS MATERIALIZED (SELECT * FROM heads LIMIT $3)
SELECT destination, partition_key, (hashtextextended(partition_key, 0) & 63)::int AS bucket, held AND state < 2 AS orphaned
FROM page ORDER BY destination, partition_key`;
}
