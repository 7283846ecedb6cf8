import { bucketOf, type Names } from '../names.ts';

/**
 * The conditions of the outbox's partial indexes, word for word: the planner uses such an index only where the
 * statement says at least what the index's own predicate says. Each is over one alias of the outbox table.
 */

/** Due at once: in the index `ready` (destination, bucket, sequence). */
export function ready(alias: string): string {
  return `${alias}.state < 2 AND ${alias}.next_attempt_at_utc IS NULL AND NOT ${alias}.held`;
}

/** Waits for its time: in the index `waiting` (destination, bucket, next attempt). */
export function waiting(alias: string): string {
  return `${alias}.state < 2 AND ${alias}.next_attempt_at_utc IS NOT NULL AND NOT ${alias}.held`;
}

/** What later rows of its key must not pass: in the index `blocking` (destination, key, sequence). */
export function blocking(alias: string): string {
  return `${alias}.partition_key IS NOT NULL AND (${alias}.held OR (${alias}.state < 2 AND ${alias}.next_attempt_at_utc IS NOT NULL))`;
}

/** Not in another program's hands: its claim has run out, or never was. */
export function unclaimed(alias: string): string {
  return `(${alias}.state = 0 OR ${alias}.locked_until_utc IS NULL OR ${alias}.locked_until_utc <= now())`;
}

/**
 * Whether a row is due at once, as one probe of the index `ready`. `where` is over the alias `o`.
 *
 * ORDER BY makes the planner take the index: for any one row of many it would read the table from its beginning,
 * through all its history. LIMIT instead of EXISTS: that it may turn into a join which reads the whole lane.
 */
export function someReady(names: Names, where: string): string {
  return `(SELECT true FROM ${names.outbox} AS o WHERE ${ready('o')} AND ${unclaimed('o')} AND ${where}
    ORDER BY o.destination, ${bucketOf('o')}, o.sequence LIMIT 1)`;
}

/** Whether a row that waited has come due, as one probe of the index `waiting`. */
export function someCome(names: Names, where: string): string {
  return `(SELECT true FROM ${names.outbox} AS o
    WHERE ${waiting('o')} AND o.next_attempt_at_utc <= now() AND ${unclaimed('o')} AND ${where}
    ORDER BY o.destination, ${bucketOf('o')}, o.next_attempt_at_utc LIMIT 1)`;
}

/**
 * Whether the first blocking row of a row's key stands before that row: true, false, or null where the key has none.
 * One probe of the index `blocking`, by the same means as above.
 * A row without sequence comes last in its key.
 */
export function blockedBefore(names: Names, alias: string): string {
  return `(SELECT b.id <> ${alias}.id AND coalesce(b.sequence < ${alias}.sequence, ${alias}.sequence IS NULL)
    FROM ${names.outbox} AS b
    WHERE b.destination = ${alias}.destination AND b.partition_key = ${alias}.partition_key AND ${blocking('b')}
    ORDER BY b.sequence LIMIT 1)`;
}

/** A person's pause that runs, over an alias of `outbox_lanes`. */
export function paused(alias: string): string {
  return `(${alias}.paused_at_utc IS NOT NULL AND (${alias}.paused_until_utc IS NULL OR ${alias}.paused_until_utc > now()))`;
}
