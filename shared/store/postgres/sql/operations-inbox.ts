import type { Names } from '../names.ts';

/** What a command needs to know of rows, by id (`$1::uuid[]`). */
export function locateInbox(names: Names): string {
  return `
SELECT id, state, coalesce(state = 1 AND locked_until_utc > now(), false) AS running
FROM ${names.inbox} WHERE id = ANY ($1::uuid[])`;
}

/**
 * Failed → Pending, retries and lost leases anew. Idempotent by the state it expects; `last_error` stays, it says what
 * this was about. The caller holds the keys of keyed rows and names their heads anew (see `inbox-keys.ts`). `$1` ids.
 */
export function requeueInbox(names: Names): string {
  return `
UPDATE ${names.inbox}
SET state = 0, held = false, retry_count = 0, lost_leases = 0, next_attempt_at_utc = NULL, locked_until_utc = NULL,
  lock_token = NULL, processed_at_utc = NULL
WHERE id = ANY ($1::uuid[]) AND state = 3
RETURNING id`;
}

/**
 * Unfinished or Failed → Discarded, where no handler's lease runs. A handler whose lease ran out is fenced by its token,
 * which goes. `$1` ids, `$2` reason.
 */
export function discardInbox(names: Names): string {
  return `
UPDATE ${names.inbox}
SET state = 4, held = false, next_attempt_at_utc = NULL, locked_until_utc = NULL, lock_token = NULL,
  processed_at_utc = clock_timestamp(), last_error = $2
WHERE id = ANY ($1::uuid[])
  AND (state IN (0, 3) OR (state = 1 AND (locked_until_utc IS NULL OR locked_until_utc <= clock_timestamp())))
RETURNING id`;
}
