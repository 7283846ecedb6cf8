import type { Names } from '../names.ts';
import { oneMore } from './counting.ts';
import { iso } from './operations-shared.ts';

/** In nobody's hands. A row that another program marked without a lease is free too: else nobody would ever take it. */
const free = '(state = 0 OR (state = 1 AND (locked_until_utc IS NULL OR locked_until_utc <= now())))';

/** A person's pause of the lane. Not correlated, so it is answered once, before any row is read. */
export function notPaused(names: Names): string {
  return `NOT EXISTS (SELECT FROM ${names.inboxLanes} AS l WHERE l.consumer = $1 AND l.message_type = $2
    AND l.paused_at_utc IS NOT NULL AND (l.paused_until_utc IS NULL OR l.paused_until_utc > now()))`;
}

/** What a claim answers of a row, from the alias `i`. JSON as text, so that no type parser of the application's comes between. */
export const claimedColumns = `i.id, i.lock_token, i.consumer, i.source, i.external_message_id, i.message_type, i.payload,
    i.headers::text AS headers, i.correlation_id, i.partition_key, i.retry_count, i.max_retries, i.sequence,
    ${iso('i.created_at_utc')} AS created_at`;

/**
 * The error of a message that used up its attempts by losing leases. It lost one more than is counted: the count goes
 * up in a claim, and this one is claimed no more.
 */
export const killedReason = `format('its lease ran out %s times: the handler is killed or frozen while it runs this message (out of memory, timeout, process exit), so it was tried alone, and is not tried again', ${oneMore('i.lost_leases')})`;

/** True for a row of `alias` that may have killed its function before: nothing else may run beside it. */
export function suspect(alias: string): string {
  return `(${alias}.state = 1 OR ${alias}.lost_leases > 0)`;
}

/** True for a row that lost its lease again although it ran alone, and has no attempts left. */
export function doomed(alias: string, maxRetries: string): string {
  return `(${alias}.state = 1 AND ${alias}.lost_leases > 0 AND ${alias}.retry_count > coalesce(${maxRetries}, ${alias}.max_retries))`;
}

/**
 * Picks from the CTE `live` (sequence, id, bytes, suspect): the lowest suspect alone, or as many as count and bytes allow,
 * but one at least.
 */
export function chosenFrom(live: string, limit: string, maxBytes: string): string {
  return `SELECT * FROM (
    SELECT l.*, bool_or(l.suspect) OVER () AS alone, row_number() OVER (ORDER BY NOT l.suspect, l.sequence, l.id) AS place,
      sum(l.bytes) OVER (ORDER BY l.sequence, l.id) AS bytes_so_far
    FROM ${live} AS l
  ) AS p WHERE place = 1 OR (NOT alone AND place <= ${limit} AND bytes_so_far <= ${maxBytes})`;
}

/** The claim itself. It touches no column that an index stores or names in its predicate, so it stays heap-only. */
export function claimSet(maxRetries: string): string {
  return `state = 1, retry_count = ${oneMore('i.retry_count')},
    lost_leases = CASE WHEN c.state = 1 THEN ${oneMore('i.lost_leases')} ELSE i.lost_leases END, max_retries = coalesce(${maxRetries}, i.max_retries)`;
}

/**
 * Claims unkeyed rows: `$1` consumer, `$2` type, `$3` limit, `$4` bytes, `$5` lease in ms, `$6` the handler's own
 * max_retries or null, `$7` whether to leave suspects out, since others are in hand already, and `$8` the source where
 * only one is wanted.
 *
 * Candidates are locked in the indexes' order with SKIP LOCKED, so that two claims at once find different rows; a row
 * that was settled since the snapshot is checked again once it is locked. The sets are materialised, else the planner
 * could run their LIMIT once per row of the update. The update finds its rows by their place, which the lock keeps: no
 * second look into an index. One that was moved between snapshot and lock is left for the next claim.
 */
export function claimUnkeyed(names: Names, { oneSource = false } = {}): string {
  const candidates = (due: string, order: string): string => `
  SELECT ctid AS place_on_disk, id, sequence, octet_length(payload) AS bytes, state, retry_count, max_retries, lost_leases
  FROM ${names.inbox}
  WHERE consumer = $1 AND message_type = $2 AND processed_at_utc IS NULL AND partition_key IS NULL AND ${due}
    AND ${free} AND (NOT $7 OR (state = 0 AND lost_leases = 0))${oneSource ? ' AND source = $8' : ''} AND ${notPaused(names)}
  ORDER BY ${order} LIMIT $3 FOR UPDATE SKIP LOCKED`;
  return `
WITH ready AS MATERIALIZED (${candidates('next_attempt_at_utc IS NULL', 'sequence')}
), come AS MATERIALIZED (${candidates('next_attempt_at_utc <= now()', 'next_attempt_at_utc')}
), found AS MATERIALIZED (
  SELECT f.*, ${suspect('f')} AS suspect, ${doomed('f', '$6::int')} AS doomed
  FROM (SELECT * FROM ready UNION ALL SELECT * FROM come) AS f
), ended AS (
  UPDATE ${names.inbox} AS i SET state = 3, processed_at_utc = clock_timestamp(), last_error = ${killedReason},
    lock_token = NULL, locked_until_utc = NULL, lost_leases = ${oneMore('i.lost_leases')}
  FROM found AS f WHERE i.ctid = f.place_on_disk AND f.doomed
  RETURNING i.id
), live AS (
  SELECT * FROM found WHERE NOT doomed
), chosen AS MATERIALIZED (
  ${chosenFrom('live', '$3', '$4')}
), claimed AS (
  UPDATE ${names.inbox} AS i SET ${claimSet('$6::int')},
    lock_token = gen_random_uuid(), locked_until_utc = clock_timestamp() + $5 * interval '1 millisecond'
  FROM chosen AS c WHERE i.ctid = c.place_on_disk
  RETURNING ${claimedColumns}, c.alone
)
SELECT (SELECT count(*)::int FROM ended) AS ended, c.*
FROM (SELECT) AS one LEFT JOIN claimed AS c ON true
ORDER BY c.sequence, c.id`;
}

/** Notes that the type has a handler: `$1` consumer, `$2` type. */
export function noteClaim(names: Names): string {
  return `
INSERT INTO ${names.inboxLanes} AS l (consumer, message_type, last_claim_at_utc) VALUES ($1, $2, clock_timestamp())
ON CONFLICT (consumer, message_type) DO UPDATE SET last_claim_at_utc = EXCLUDED.last_claim_at_utc`;
}
