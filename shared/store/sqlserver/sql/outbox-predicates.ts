import { type Names, sameText } from '../names.ts';
import { now } from './time.ts';

/**
 * The conditions that the outbox's indexes serve, each over one alias of the outbox table. The indexes are plain ones:
 * what PostgreSQL says in a partial index's predicate is said here by the leading columns.
 */

/** Due at once: in the index `due` (held, state, lane, bucket, next attempt, sequence), among the null next attempts. */
export function ready(alias: string): string {
  return `${alias}.[State] IN (0, 1) AND ${alias}.[Held] = 0 AND ${alias}.[NextAttemptAtUtc] IS NULL`;
}

/** Waits for its time: in the index `due`, behind those that are due at once. */
export function waiting(alias: string): string {
  return `${alias}.[State] IN (0, 1) AND ${alias}.[Held] = 0 AND ${alias}.[NextAttemptAtUtc] IS NOT NULL`;
}

/** What later rows of its key must not pass: in the index `key` (lane, key, held, state, next attempt, sequence). */
export function blocking(alias: string): string {
  return `${alias}.[PartitionKey] IS NOT NULL AND ((${alias}.[Held] = 1 AND ${alias}.[State] IN (0, 1, 3)) OR (${alias}.[Held] = 0 AND ${alias}.[State] IN (0, 1) AND ${alias}.[NextAttemptAtUtc] IS NOT NULL))`;
}

/** Not in another program's hands: its claim has run out, or never was. */
export function unclaimed(alias: string): string {
  return `(${alias}.[State] = 0 OR ${alias}.[LockedUntilUtc] IS NULL OR ${alias}.[LockedUntilUtc] <= ${now})`;
}

/** A person's pause that runs, over an alias of the lanes table. */
export function paused(alias: string): string {
  return `(${alias}.[PausedAtUtc] IS NOT NULL AND (${alias}.[PausedUntilUtc] IS NULL OR ${alias}.[PausedUntilUtc] > ${now}))`;
}

/**
 * How due rows are looked at. A row that a producer hasn't committed is passed over: to wait for it would hang the lane
 * on that transaction. What it may be a test of is a wish (is there work?) or what the caller holds the lease of; with
 * READ_COMMITTED_SNAPSHOT on, READPAST is allowed only together with READCOMMITTEDLOCK.
 *
 * The index is named, since for a few rows in an order the optimizer may else walk the clustered index through all history.
 */
export function passing(names: Names, index: 'due' | 'key'): string {
  return `WITH (READPAST, READCOMMITTEDLOCK, ROWLOCK, INDEX(${names.placeholders[`outbox_index_${index}`]}))`;
}

/**
 * Whether a row of one lane and bucket is due, each branch one descent of the index. `lane` and `bucket` are expressions;
 * a state-1 row is another program's, of which there are few.
 */
export function someDue(names: Names, lane: string, bucket: string): string {
  const row = `SELECT 1 FROM ${names.outbox} AS o ${passing(names, 'due')}
      WHERE o.[Held] = 0 AND o.[Destination] = ${lane} AND o.[Bucket] = ${bucket}`;
  return `(EXISTS (${row} AND o.[State] = 0 AND o.[NextAttemptAtUtc] IS NULL)
    OR EXISTS (${row} AND o.[State] = 0 AND o.[NextAttemptAtUtc] <= ${now})
    OR EXISTS (${row} AND o.[State] = 1 AND (o.[NextAttemptAtUtc] IS NULL OR o.[NextAttemptAtUtc] <= ${now}) AND ${unclaimed('o')}))`;
}

/**
 * What else must hold of a row that is found by its id, said so that no index serves it. FORCESEEK leaves the choice among
 * the indexes, and by statistics of a quiet hour the unfinished rows of a lane look as few as one id finds: each settle
 * would then go through the backlog, and wait for rows in others' hands.
 */
export function besides(condition: string): string {
  return `1 = CASE WHEN ${condition} THEN 1 ELSE 0 END`;
}

/** How what may block a key is read: by the index of keys, and nothing is passed over. */
export function byKey(names: Names): string {
  return `WITH (READCOMMITTEDLOCK, ROWLOCK, INDEX(${names.placeholders['outbox_index_key']}))`;
}

/**
 * The lowest rows of a key that later ones must not pass, at most `top` of each kind: an APPLY over the expressions of
 * lane and key. Three descents of the index, whatever stands behind them. Nothing is passed over: a row that is locked
 * is in the way all the same, and whoever changes one holds the lease of its bucket.
 */
export function blockersOf(names: Names, lane: string, key: string, top: string): string {
  const branch = (where: string): string => `
    SELECT * FROM (SELECT TOP (${top}) b.[Id], b.[Sequence], b.[Held], b.[State]
      FROM ${names.outbox} AS b ${byKey(names)}
      WHERE b.[Destination] = ${lane} AND ${sameText('b.[PartitionKey]', key)} AND ${where}
      ORDER BY b.[Sequence]) AS x`;
  return [
    branch('b.[Held] = 1 AND b.[State] = 0 AND b.[NextAttemptAtUtc] IS NULL'),
    branch('b.[Held] IN (0, 1) AND b.[State] IN (0, 1) AND b.[NextAttemptAtUtc] IS NOT NULL'),
    branch('b.[Held] = 1 AND b.[State] IN (1, 3) AND b.[NextAttemptAtUtc] IS NULL'),
  ].join('\n    UNION ALL');
}
