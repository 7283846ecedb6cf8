import { bucketOf, type Names } from '../names.ts';
import { blocking, ready } from './outbox-predicates.ts';

/** Due rows of a bucket that one statement looks through for further followers of a blocked key. */
const SCAN = 2_000;

/**
 * Sets rows behind a blocked one `held`, so that they leave the index of what is due: those that a read has met, and
 * others of their keys among the next rows of the bucket. They would cost each read anew otherwise, and look due.
 * `$1` lane, `$2` buckets, `$3` token, `$4` per bucket the sequence to look from, `$5` keys, `$6` and `$7` ids that were met and their keys.
 *
 * The leases' rows are locked until the statement is over, so nobody else can take a bucket meanwhile; what blocks is
 * looked up again in this statement's own snapshot.
 */
export function holdSql(names: Names): string {
  return `
WITH mine AS MATERIALIZED (
  SELECT bucket FROM ${names.leases}
  WHERE destination = $1 AND bucket = ANY ($2::int[]) AND lock_token = $3 AND locked_until_utc > clock_timestamp()
  FOR UPDATE
), head AS MATERIALIZED (
  SELECT b.* FROM unnest($5::text[]) AS k(key) CROSS JOIN LATERAL (
    SELECT b.id, b.partition_key, b.sequence FROM ${names.outbox} AS b
    WHERE b.destination = $1 AND b.partition_key = k.key AND ${blocking('b')} ORDER BY b.sequence LIMIT 1
  ) AS b
)
UPDATE ${names.outbox} AS o SET held = true
FROM head, (
  SELECT n.id, n.partition_key FROM mine JOIN unnest($2::int[], $4::bigint[]) AS f(bucket, first) ON f.bucket = mine.bucket
  CROSS JOIN LATERAL (
    SELECT r.id, r.partition_key FROM ${names.outbox} AS r
    WHERE r.destination = $1 AND ${bucketOf('r')} = f.bucket AND ${ready('r')} AND r.sequence >= f.first
    ORDER BY r.sequence LIMIT ${SCAN}
  ) AS n
  WHERE n.partition_key = ANY ($5::text[])
  UNION
  SELECT * FROM unnest($6::uuid[], $7::text[])
) AS met
WHERE o.id = met.id AND head.partition_key = met.partition_key
  AND o.destination = $1 AND ${bucketOf('o')} IN (SELECT bucket FROM mine) AND o.state < 2 AND NOT o.held
  AND o.id <> head.id AND coalesce(head.sequence < o.sequence, o.sequence IS NULL)`;
}
