import type { Names } from '../names.ts';
import { by, changing, digestFrom, digestGiven, size } from './inbox-shared.ts';
import { never, now } from './time.ts';

/**
 * Rules for keyed rows of the inbox, for the store and for operators' commands alike:
 *
 * 1. Whoever changes a keyed row's fate (settle, requeue, discard) locks its key's row first, several keys in sorted
 *    order, then changes the row, then calls `refreshKeys`, all in one READ COMMITTED transaction.
 * 2. Ingest inserts rows first and then locks their keys, in the same order. So whoever holds a key sees all its rows,
 *    or the key's row is there again when the latecomer has it: no message is left without a key that names it.
 * 3. A key's row is deleted only by `refreshKeys` and by the Processed mark, under that lock.
 *
 * That is why a look at a key's head may step over locked rows: under the key's lock, what another has locked is a row
 * that ingest is inserting, which will see to its key itself. A look that waited for it would wait for somebody who
 * waits for this very key.
 */
const stepping = 'WITH (READPAST, READCOMMITTEDLOCK, ROWLOCK)';

/** Rows that a key still has to go through: unfinished ones, and a Failed one that blocks it. Names the index's predicate. */
export function standing(alias: string): string {
  return `${alias}.[PartitionKey] IS NOT NULL AND ${alias}.[State] IN (0, 1, 3) AND (${alias}.[ProcessedAtUtc] IS NULL OR ${alias}.[Held] = 1)`;
}

/** A key's head: one probe of its index, whatever stands behind. A subquery for APPLY, over an expression of the key's digest. */
export function headOf(names: Names, key: string): string {
  return `SELECT TOP (1) r.[Id], r.[Sequence], r.[MessageType], r.[LaneDigest], r.[State], r.[NextAttemptAtUtc], r.[LockedUntilUtc],
      r.[RetryCount], r.[MaxRetries], r.[LostLeases], ${size('r')} AS [Size]
    FROM ${names.inbox} AS r ${by(stepping, names, 'inbox_index_key')}
    WHERE r.[KeyDigest] = ${key} AND ${standing('r')}
    ORDER BY r.[Sequence]`;
}

/** Keys out of JSON. JavaScript has sorted them, and the loop join keeps that order, so two who lock several don't deadlock. */
const given = `OPENJSON(@p1) WITH ([key] CHAR(64) '$.key', [token] UNIQUEIDENTIFIER '$.token') AS g`;

/** Locks keys: `@p1` JSON array of `{ key, token }`, sorted by key. Answers those that have a row. */
export function lockKeys(names: Names): string {
  return `
SELECT g.[key] AS [key]
FROM ${given}
INNER LOOP JOIN ${names.keys} AS k ${changing} ON k.[KeyDigest] = ${digestFrom('g.[key]')}
OPTION (MAXDOP 1)`;
}

/**
 * Locks the keys of rows (`@p1` JSON array of ids), making the key's row where there is none: a requeued message may be
 * the only one left of its key. Answers the keys. Two that make one key at once: one gets a duplicate key, and tries again.
 */
export function lockKeysOfRows(names: Names): string {
  return `
DECLARE @keys TABLE ([KeyDigest] BINARY(32) NOT NULL PRIMARY KEY, [Id] UNIQUEIDENTIFIER NOT NULL);
INSERT INTO @keys ([KeyDigest], [Id])
SELECT f.[KeyDigest], f.[Id] FROM (
  SELECT i.[KeyDigest], i.[Id], ROW_NUMBER() OVER (PARTITION BY i.[KeyDigest] ORDER BY i.[Sequence], i.[Id]) AS [Place]
  FROM OPENJSON(@p1) WITH ([id] UNIQUEIDENTIFIER '$') AS d
  INNER LOOP JOIN ${names.inbox} AS i WITH (READCOMMITTEDLOCK, FORCESEEK) ON i.[Id] = d.[id]
  WHERE i.[PartitionKey] IS NOT NULL
) AS f WHERE f.[Place] = 1;
INSERT INTO ${names.keys} ([KeyDigest], [Consumer], [Source], [PartitionKey], [LaneDigest], [HeadSequence], [HeadType])
SELECT d.[KeyDigest], ISNULL(i.[Consumer], N''), i.[Source], i.[PartitionKey], i.[LaneDigest], COALESCE(i.[Sequence], 0), i.[MessageType]
FROM @keys AS d INNER LOOP JOIN ${names.inbox} AS i WITH (READCOMMITTEDLOCK, FORCESEEK) ON i.[Id] = d.[Id]
WHERE NOT EXISTS (SELECT 1 FROM ${names.keys} AS k ${changing} WHERE k.[KeyDigest] = d.[KeyDigest])
OPTION (MAXDOP 1);
SELECT CONVERT(NCHAR(64), d.[KeyDigest], 2) AS [key] FROM @keys AS d ORDER BY d.[KeyDigest];`;
}

/** What a key's row says of its head `h`, as assignments over the alias `k`; a lease that is `token`'s ends. */
const headSet = (
  token: string,
): string => `[HeadSequence] = COALESCE(h.[Sequence], 0), [HeadType] = h.[MessageType], [LaneDigest] = h.[LaneDigest],
  [Blocked] = CASE WHEN h.[State] = 3 THEN 1 ELSE 0 END,
  [NextAttemptAtUtc] = CASE WHEN h.[State] = 3 THEN NULL ELSE h.[NextAttemptAtUtc] END,
  [LockToken] = CASE WHEN k.[LockToken] = ${token} THEN NULL ELSE k.[LockToken] END,
  [LockedUntilUtc] = CASE WHEN k.[LockToken] = ${token} THEN ${never} ELSE k.[LockedUntilUtc] END`;

const dueNow = `CASE WHEN inserted.[Blocked] = 0 AND (inserted.[NextAttemptAtUtc] IS NULL OR inserted.[NextAttemptAtUtc] <= ${now}) THEN 1 ELSE 0 END`;

/**
 * Names each key's head anew, under its lock: `@p1` JSON array of `{ key, token }`, where the token is of the lease to end,
 * or null to leave it as it is: a message that runs under it goes on, and a requeued one before it waits. A key with
 * nothing left goes. Answers the types of heads with whether they are due.
 */
export function refreshKeys(names: Names): string {
  return `
UPDATE k SET ${headSet('g.[token]')}
OUTPUT inserted.[HeadType] AS [head_type], ${dueNow} AS [due]
FROM ${given}
INNER LOOP JOIN ${names.keys} AS k WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON k.[KeyDigest] = ${digestFrom('g.[key]')}
CROSS APPLY (${headOf(names, 'k.[KeyDigest]')}) AS h;
DELETE k
FROM ${given}
INNER LOOP JOIN ${names.keys} AS k WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON k.[KeyDigest] = ${digestFrom('g.[key]')}
WHERE NOT EXISTS (${headOf(names, 'k.[KeyDigest]')});`;
}

/**
 * The rest of a Processed mark: the way on of the key `@p3`, whose lease of token `@p2` ends. `@done` says whether the mark
 * was made. The caller's batch goes on with `@next`.
 */
export function wayOn(names: Names): string {
  return `
DECLARE @next TABLE ([HeadType] NVARCHAR(200) NOT NULL, [Due] INT NOT NULL);
UPDATE k SET ${headSet('CONVERT(UNIQUEIDENTIFIER, @p2)')}
OUTPUT inserted.[HeadType], ${dueNow} INTO @next ([HeadType], [Due])
FROM ${names.keys} AS k WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)
CROSS APPLY (${headOf(names, 'k.[KeyDigest]')}) AS h
WHERE k.[KeyDigest] = ${digestGiven('@p3')} AND EXISTS (SELECT 1 FROM @done);
DELETE k FROM ${names.keys} AS k WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)
WHERE k.[KeyDigest] = ${digestGiven('@p3')} AND EXISTS (SELECT 1 FROM @done)
  AND NOT EXISTS (${headOf(names, 'k.[KeyDigest]')});`;
}
