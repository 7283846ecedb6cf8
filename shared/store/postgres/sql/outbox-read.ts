import { bucketOf, type Names } from '../names.ts';
import { prepared } from '../prepared.ts';
import { blockedBefore, paused, ready, unclaimed, waiting } from './outbox-predicates.ts';

const dueAt = {
  ready,
  waiting: (alias: string) => `${waiting(alias)} AND ${alias}.next_attempt_at_utc <= now()`,
};

/**
 * Reads due messages of leased buckets, the earliest first, without a write.
 * `$1` lane, `$2` buckets, `$3` quotas, `$4` limit, `$5` bytes, `$6` the probe's token or null, `$7` ids to leave out.
 *
 * - A LATERAL per bucket is one descent of the index and then neighbours; the planner has no other way to take it.
 * - Each branch has its own partial index, so that rows which wait or are held cost nothing, however many.
 * - Every read begins at the head. A cursor would pass a row that commits late, and then find a later one of its key.
 *   What is under way is passed over by id; a row without a sequence, another program's of before it, sorts last.
 * - The quotas are more than the limit, and the earliest rows of all are kept: so the buckets stay abreast, and a batch's
 *   rows are neighbours in the table, where bucket by bucket each would be in a page of its own.
 * - The ids come as a subquery, which is hashed: a list would be compared with each row one by one.
 * - Bytes are added up over the sizes that TOAST knows: a payload beyond the bound is neither fetched nor sent, and comes as null.
 * - `blocked`: true where an earlier row of the key is in the way, false where the key has rows in the way behind this one
 *   or it is such a row itself, null where the key is free.
 */
export function readSql(names: Names, options: { readonly except: boolean }): string {
  const except = options.except ? ' AND o.id NOT IN (SELECT unnest($7::uuid[]))' : '';
  const branch = (where: string, order: string): string => `
    (SELECT o.* FROM ${names.outbox} AS o
     WHERE o.destination = $1 AND ${bucketOf('o')} = l.bucket AND ${where} AND ${unclaimed('o')}${except}
     ORDER BY ${order} LIMIT l.quota)`;
  const branches = [
    branch(dueAt.ready('o'), 'o.sequence'),
    branch(dueAt.waiting('o'), 'o.next_attempt_at_utc'),
  ];
  return prepared(`
SELECT ${columns(names)}, o.bucket,
  CASE WHEN sum(octet_length(o.payload)) OVER w <= $5::bigint OR row_number() OVER w = 1 THEN o.payload END AS payload
FROM (
  SELECT o.*, l.bucket FROM unnest($2::int[], $3::int[]) AS l(bucket, quota)
  CROSS JOIN LATERAL (${branches.join(' UNION ALL ')}
  ) AS o
  WHERE ${open(names, '$6')}
  ORDER BY o.sequence, o.id LIMIT $4
) AS o
WINDOW w AS (ORDER BY o.sequence, o.id ROWS UNBOUNDED PRECEDING)`);
}

/**
 * Reads the named messages, where they are due. `$1` lane, `$2` buckets, `$3` ids, `$4` limit, `$5` bytes,
 * `$6` the probe's token or null.
 */
export function readOnlySql(names: Names): string {
  return `
SELECT ${columns(names)}, ${bucketOf('o')}::int AS bucket,
  CASE WHEN sum(octet_length(o.payload)) OVER w <= $5::bigint OR row_number() OVER w = 1 THEN o.payload END AS payload
FROM ${names.outbox} AS o
WHERE o.id = ANY ($3::uuid[]) AND o.destination = $1 AND ${bucketOf('o')} = ANY ($2::int[])
  AND o.state < 2 AND NOT o.held AND (o.next_attempt_at_utc IS NULL OR o.next_attempt_at_utc <= now())
  AND ${unclaimed('o')} AND ${open(names, '$6')}
WINDOW w AS (ORDER BY o.sequence, o.id ROWS UNBOUNDED PRECEDING)
LIMIT $4`;
}

/** A lane that is paused or open answers nothing: both are looked at with each batch. The probe's holder may read an open one. */
function open(names: Names, probe: string): string {
  return `NOT EXISTS (SELECT FROM ${names.lanes} AS p WHERE p.destination = $1 AND (${paused('p')}
  OR (p.open_until_utc IS NOT NULL AND (p.probe_token IS DISTINCT FROM ${probe}::uuid OR p.probe_until_utc <= clock_timestamp()))))`;
}

/** 64-bit numbers and JSON as text, so that no type parser of the application's comes between. */
function columns(names: Names): string {
  return `o.id, o.message_type, o.headers::text AS headers, o.correlation_id, o.partition_key,
  o.sequence::text AS sequence, o.retry_count, o.max_retries, octet_length(o.payload) AS bytes,
  CASE WHEN o.partition_key IS NOT NULL THEN ${blockedBefore(names, 'o')} END AS blocked`;
}
