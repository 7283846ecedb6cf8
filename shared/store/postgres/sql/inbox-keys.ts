import type { Names } from '../names.ts';

/**
 * Rules for keyed rows of the inbox, for the store and for operators' commands alike:
 *
 * 1. Whoever changes a keyed row's fate (settle, requeue, discard) locks its key's row first, in a statement of its own,
 *    several keys in sorted order, then changes the row, then calls `refreshKeys`, all in one READ COMMITTED transaction.
 *    The statements must be apart: only one begun after the lock was won sees what its last holder committed.
 * 2. Ingest inserts rows first and then locks their keys, in the same order. So whoever holds a key sees all its rows,
 *    or the key's row is there again when the latecomer has it: no message is left without a key that names it.
 * 3. A key's row is deleted only by `refreshKeys` and by the Processed mark, under that lock.
 */
export const keyIdentity = ['consumer', 'source', 'partition_key'] as const;

/** Failed rows by the index that holds them; `state` alone would read the whole table. */
export const inboxFailed = 'processed_at_utc IS NOT NULL AND last_error IS NOT NULL AND state = 3';

/** Rows that a key still has to go through: unfinished ones, and a Failed one that blocks it. Names the index's predicate. */
export function standing(alias: string): string {
  return `${alias}.partition_key IS NOT NULL AND (${alias}.processed_at_utc IS NULL OR ${alias}.held) AND ${alias}.state IN (0, 1, 3)`;
}

/** True for two aliases with the same key. */
export function sameKey(left: string, right: string): string {
  return keyIdentity.map((column) => `${left}.${column} = ${right}.${column}`).join(' AND ');
}

/** A key's head: one probe of its index, whatever stands behind. A subquery for LATERAL; `but` leaves a row out. */
export function headOf(names: Names, key: string, but = 'true'): string {
  return `SELECT i.id, i.sequence, i.message_type, i.state, i.next_attempt_at_utc, i.locked_until_utc, i.retry_count,
      i.max_retries, i.lost_leases, octet_length(i.payload) AS bytes
    FROM ${names.inbox} AS i
    WHERE ${sameKey('i', key)} AND ${standing('i')} AND ${but}
    ORDER BY i.sequence LIMIT 1`;
}

/** Locks keys: `$1` consumers, `$2` sources, `$3` keys. Sorted, so that two who lock several never wait for each other. */
export function lockKeys(names: Names): string {
  return `
SELECT 1 AS locked FROM ${names.keys} AS k
WHERE (k.consumer, k.source, k.partition_key) IN (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]))
ORDER BY k.consumer, k.source, k.partition_key
FOR UPDATE`;
}

/**
 * Locks the keys of the given rows (`$1::uuid[]`), making the key's row where there is none: a requeued message may be
 * the only one left of its key. Answers the keys. The update that changes nothing is what locks a row that is there.
 */
export function lockKeysOfRows(names: Names): string {
  return `
WITH rows AS (
  SELECT DISTINCT ON (consumer, source, partition_key) consumer, source, partition_key, sequence, message_type
  FROM ${names.inbox} WHERE id = ANY ($1::uuid[]) AND partition_key IS NOT NULL
  ORDER BY consumer, source, partition_key, sequence
), locked AS (
  INSERT INTO ${names.keys} AS k (consumer, source, partition_key, head_sequence, head_type)
  SELECT consumer, source, partition_key, coalesce(sequence, 0), message_type FROM rows
  ORDER BY consumer, source, partition_key
  ON CONFLICT (consumer, source, partition_key) DO UPDATE SET head_type = k.head_type WHERE false
)
SELECT consumer, source, partition_key FROM rows ORDER BY consumer, source, partition_key`;
}

/**
 * Names each key's head anew, under its lock: `$1` consumers, `$2` sources, `$3` keys, `$4::uuid[]` the lease to end,
 * or null to leave it as it is: a message that runs under it goes on, and a requeued one before it waits.
 * Answers the types of heads that are due. A key with nothing left goes.
 */
export function refreshKeys(names: Names): string {
  return `
WITH given AS (
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) AS g (consumer, source, partition_key, token)
), ${wayOn(names, 'given')}
SELECT DISTINCT head_type FROM kept WHERE due`;
}

/**
 * CTEs that set, or delete, the row of each key in `from` (identity and `token`), by a look at its head.
 * The last one, `kept`, answers `head_type` and whether the head is `due`.
 */
export function wayOn(names: Names, from: string, but = 'true'): string {
  return `heads AS (
  SELECT f.consumer, f.source, f.partition_key, f.token, h.id, h.sequence, h.message_type, h.state, h.next_attempt_at_utc
  FROM ${from} AS f LEFT JOIN LATERAL (${headOf(names, 'f', but)}) AS h ON true
), gone AS (
  DELETE FROM ${names.keys} AS k USING heads AS h WHERE ${sameKey('k', 'h')} AND h.id IS NULL
), kept AS (
  UPDATE ${names.keys} AS k SET
    head_sequence = coalesce(h.sequence, 0), head_type = h.message_type, blocked = (h.state = 3),
    next_attempt_at_utc = CASE WHEN h.state = 3 THEN NULL ELSE h.next_attempt_at_utc END,
    lock_token = CASE WHEN k.lock_token = h.token THEN NULL ELSE k.lock_token END,
    locked_until_utc = CASE WHEN k.lock_token = h.token THEN '-infinity' ELSE k.locked_until_utc END
  FROM heads AS h WHERE ${sameKey('k', 'h')} AND h.id IS NOT NULL
  RETURNING k.head_type, NOT k.blocked AND (k.next_attempt_at_utc IS NULL OR k.next_attempt_at_utc <= clock_timestamp()) AS due
)`;
}
