import { defaults } from '../../../delivery/defaults.ts';
import { bucketOf, type Names } from '../names.ts';
import { someCome, someReady } from './outbox-predicates.ts';

/** Makes the lane's lease rows where they are missing. `$1` lane. In one order by all, so that two never wait for each other. */
export function leaseRowsSql(names: Names): string {
  return `
INSERT INTO ${names.leases} (destination, bucket)
SELECT $1, bucket FROM generate_series(0, ${defaults.buckets - 1}) AS bucket ORDER BY bucket
ON CONFLICT DO NOTHING`;
}

/**
 * Leases free buckets: those with due rows, the one first that was leased longest ago; or, with `named`, those of `$5`.
 * `$1` lane, `$2` limit, `$3` token, `$4` milliseconds.
 *
 * SKIP LOCKED: a row that another is just leasing, or extending, isn't worth waiting for. The locked row is looked at
 * again in its newest version, so two never take one bucket. ARRAY: a joined subquery may be run more than once, and
 * each run would lock further rows, over the limit.
 */
export function leaseSql(names: Names, options: { readonly named: boolean }): string {
  const bucket = `o.destination = $1 AND ${bucketOf('o')} = l.bucket`;
  const wanted = options.named
    ? 'l.bucket = ANY ($5::int[])'
    : `(${someReady(names, bucket)} OR ${someCome(names, bucket)})`;
  return `
UPDATE ${names.leases} AS taken
SET lock_token = $3, locked_until_utc = clock_timestamp() + $4::float8 * interval '1 millisecond'
WHERE taken.destination = $1 AND taken.bucket = ANY (ARRAY(
  SELECT l.bucket FROM ${names.leases} AS l
  WHERE l.destination = $1 AND l.locked_until_utc <= clock_timestamp() AND ${wanted}
  ORDER BY l.locked_until_utc, l.bucket LIMIT $2 FOR UPDATE SKIP LOCKED
))
RETURNING taken.bucket::int AS bucket`;
}

/** Gives buckets back, where the token still has them. `$1` lane, `$2` buckets, `$3` token. */
export function releaseSql(names: Names): string {
  return `
UPDATE ${names.leases} SET lock_token = NULL, locked_until_utc = clock_timestamp()
WHERE destination = $1 AND bucket = ANY ($2::int[]) AND lock_token = $3 AND locked_until_utc > clock_timestamp()`;
}

/** Lane and bucket of unfinished messages. `$1` ids. */
export function bucketsOfSql(names: Names): string {
  return `
SELECT o.id, o.destination, ${bucketOf('o')}::int AS bucket FROM ${names.outbox} AS o
WHERE o.id = ANY ($1::uuid[]) AND o.state < 2`;
}
