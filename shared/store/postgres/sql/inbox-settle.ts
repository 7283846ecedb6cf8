import type { Names } from '../names.ts';
import { wayOn } from './inbox-keys.ts';

/** The fence of every write after a claim. The clock, not the transaction's start: a handler's transaction may be old. */
const held = 'i.state = 1 AND i.locked_until_utc > clock_timestamp()';

/** A success is no failure, so the claim's count is taken back. */
const processed = `state = 2, processed_at_utc = clock_timestamp(), retry_count = greatest(i.retry_count - 1, 0),
    next_attempt_at_utc = NULL, lock_token = NULL, locked_until_utc = NULL, lost_leases = 0, last_error = NULL`;

/** Marks an unkeyed message, `$1` id and `$2` token, in the handler's transaction. */
export function markProcessed(names: Names): string {
  return `
UPDATE ${names.inbox} AS i SET ${processed}
WHERE i.id = $1 AND i.lock_token = $2 AND ${held}
RETURNING true AS done`;
}

/**
 * Locks the key of the message that is about to be marked: `$1` consumer, `$2` source, `$3` key. Only the mark and the
 * commit follow, so a function that is frozen now may not sit on the key for long: ingest of the key would wait for it.
 * `$4` is the idle limit from here on, in ms.
 */
export function lockKeyToMark(names: Names): string {
  return `
SELECT set_config('idle_in_transaction_session_timeout', $4, true)
FROM ${names.keys} WHERE consumer = $1 AND source = $2 AND partition_key = $3
FOR UPDATE`;
}

/** Marks a keyed message, `$1` id and `$2` token, and names its key's next head; the key's lock was taken before. */
export function markKeyedProcessed(names: Names): string {
  return `
WITH done AS (
  UPDATE ${names.inbox} AS i SET ${processed}
  WHERE i.id = $1 AND i.lock_token = $2 AND ${held}
  RETURNING i.consumer, i.source, i.partition_key, $2::uuid AS token
), ${wayOn(names, 'done', 'i.id <> $1')}
SELECT (SELECT head_type FROM kept WHERE due) AS next_type FROM done`;
}

/**
 * Writes failures: `$1` ids, `$2` tokens, `$3` reasons, `$4` seconds to the next attempt or null to end at once,
 * `$5` whether a Failed message blocks its key. Keyed ones under their keys' locks, with `refreshKeys` after it.
 * A wait is cut at ten years: an instant that no column holds would fail the whole batch.
 */
export function markFailed(names: Names): string {
  const ends = '(f.wait IS NULL OR i.retry_count > i.max_retries)';
  return `
UPDATE ${names.inbox} AS i SET
  state = CASE WHEN ${ends} THEN 3 ELSE 0 END,
  processed_at_utc = CASE WHEN ${ends} THEN clock_timestamp() END,
  next_attempt_at_utc = CASE WHEN NOT ${ends} THEN clock_timestamp() + make_interval(secs => least(f.wait, 315360000)) END,
  held = ${ends} AND $5 AND i.partition_key IS NOT NULL,
  last_error = f.reason, lock_token = NULL, locked_until_utc = NULL, lost_leases = 0
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::float8[]) AS f (id, token, reason, wait)
WHERE i.id = f.id AND i.lock_token = f.token AND ${held}
RETURNING i.id, i.state = 3 AS ended`;
}

/**
 * Gives messages back, due at once and not counted: `$1` ids, `$2` tokens. A next attempt that has come stays in the
 * past. `lost_leases` stays too: one that was claimed alone and not begun is to be claimed alone again.
 */
export function release(names: Names): string {
  return `
UPDATE ${names.inbox} AS i SET state = 0, retry_count = greatest(i.retry_count - 1, 0), lock_token = NULL, locked_until_utc = NULL
FROM unnest($1::uuid[], $2::uuid[]) AS a (id, token)
WHERE i.id = a.id AND i.lock_token = a.token AND ${held}
RETURNING i.id, false AS ended`;
}
