import type { AfterSuccess } from '../../outbox-store.ts';
import { bucketOf, type Names } from '../names.ts';
import { prepared } from '../prepared.ts';
import { oneMore } from './counting.ts';
import { blocking } from './outbox-predicates.ts';

/** The columns that an archived row keeps; `state` and `processed_at_utc` are its end's. */
const archived =
  'id, destination, message_type, payload, headers, correlation_id, created_at_utc, next_attempt_at_utc, retry_count, max_retries, last_error, partition_key, sequence';

/**
 * Writes that messages were published and extends the lease, in one statement: whoever lost a bucket changes nothing
 * in it. `$1` lane, `$2` buckets, `$3` token, `$4` milliseconds, `$5` ids, `$6` with `release`: ids whose key has rows in the way.
 */
export function publishedSql(
  names: Names,
  options: { readonly afterSuccess: AfterSuccess; readonly release: boolean },
): string {
  const done = {
    keep: `UPDATE ${names.outbox} AS o
  SET state = 2, held = false, locked_until_utc = NULL, processed_at_utc = clock_timestamp()
  ${ours} RETURNING o.id, o.partition_key`,
    delete: `DELETE FROM ${names.outbox} AS o ${ours} RETURNING o.id, o.partition_key`,
    archive: `DELETE FROM ${names.outbox} AS o ${ours} RETURNING ${archived.replaceAll(/\w+/g, 'o.$&')}`,
  }[options.afterSuccess];
  const kept =
    options.afterSuccess === 'archive'
      ? `, moved AS (
  INSERT INTO ${names.outboxArchive} (${archived}, state, processed_at_utc)
  SELECT ${archived}, 2, clock_timestamp() FROM done ON CONFLICT DO NOTHING
)`
      : '';
  return prepared(`${mine(names)}, done AS (
  ${done}
)${kept}${options.release ? `, ${freed(names, 'id = ANY ($6::uuid[])', '$5')}` : ''}
${answer(options.release, 'NULL::uuid[]')}`);
}

/**
 * Writes failures: a next attempt, or the end in Failed where the retries are used up or there is to be none.
 * `$1` lane, `$2` buckets, `$3` token, `$4` milliseconds, `$5` ids, `$6` reasons, `$7` seconds to the retry or null,
 * `$8` with `release`: ids whose key has rows in the way.
 *
 * A keyed row that ends under `block` is marked held: that keeps it in the index of what blocks a key.
 */
export function failedSql(
  names: Names,
  options: { readonly block: boolean; readonly release: boolean },
): string {
  const ends = '(g.seconds IS NULL OR o.retry_count >= o.max_retries)';
  return `${mine(names)}, done AS (
  UPDATE ${names.outbox} AS o
  SET state = CASE WHEN ${ends} THEN 3 ELSE 0 END,
    retry_count = CASE WHEN g.seconds IS NULL THEN o.retry_count ELSE ${oneMore('o.retry_count')} END,
    next_attempt_at_utc = CASE WHEN NOT ${ends} THEN clock_timestamp() + make_interval(secs => g.seconds) END,
    held = ${options.block ? `${ends} AND o.partition_key IS NOT NULL` : 'false'},
    processed_at_utc = CASE WHEN ${ends} THEN clock_timestamp() END,
    locked_until_utc = NULL, last_error = g.reason
  FROM unnest($5::uuid[], $6::text[], $7::float8[]) AS g(id, reason, seconds)
  WHERE o.id = g.id AND o.state < 2 AND ${bucketOf('o')} IN (SELECT bucket FROM mine)
  RETURNING o.id, o.partition_key, o.state
)${options.release ? `, ${freed(names, 'state = 3 AND id = ANY ($8::uuid[])', '$5')}` : ''}
${answer(options.release, '(SELECT array_agg(id) FROM done WHERE state = 3)')}`;
}

/** The fence: the lease's rows are extended, and locked until the statement is over. */
function mine(names: Names): string {
  return `
WITH mine AS (
  UPDATE ${names.leases} SET locked_until_utc = clock_timestamp() + $4::float8 * interval '1 millisecond'
  WHERE destination = $1 AND bucket = ANY ($2::int[]) AND lock_token = $3 AND locked_until_utc > clock_timestamp()
  RETURNING bucket
)`;
}

const ours = `WHERE o.id = ANY ($5::uuid[]) AND o.state < 2 AND ${bucketOf('o')} IN (SELECT bucket FROM mine)`;

/**
 * Lets held followers go: of each key that has ended messages among `settled`, the lowest ones, up to the first row that
 * waits or is Failed. As many as were settled, at first twice as many: so a key's pace is kept, and what is let go at once
 * stays few. The settled rows themselves still look unfinished here, so they are passed over by id.
 */
function freed(names: Names, settled: string, ids: string): string {
  return `freed AS (
  UPDATE ${names.outbox} AS f SET held = false
  FROM (
    SELECT partition_key, count(*) AS ended FROM done WHERE partition_key IS NOT NULL AND ${settled} GROUP BY 1
  ) AS k
  CROSS JOIN LATERAL (
    SELECT b.id, bool_and(b.held AND b.state < 2) OVER (ORDER BY b.sequence ROWS UNBOUNDED PRECEDING) AS free
    FROM ${names.outbox} AS b
    WHERE b.destination = $1 AND b.partition_key = k.partition_key AND ${blocking('b')} AND b.id <> ALL (${ids}::uuid[])
    ORDER BY b.sequence LIMIT least(2 * k.ended, greatest(k.ended, 100))
  ) AS next
  WHERE f.id = next.id AND next.free AND f.held AND f.state < 2
  RETURNING ${bucketOf('f')}::int AS bucket
)`;
}

function answer(release: boolean, ended: string): string {
  return `SELECT (SELECT array_agg(bucket::int) FROM mine) AS buckets, (SELECT array_agg(id) FROM done) AS settled,
  ${ended} AS ended, ${release ? '(SELECT array_agg(DISTINCT bucket) FROM freed)' : 'NULL::int[]'} AS freed`;
}
