import type { Names } from '../names.ts';
import { wayOn } from './inbox-keys.ts';
import { changing, digestGiven, idText } from './inbox-shared.ts';
import { now } from './time.ts';

/**
 * The fence of every write after a claim, beside the token. The instant is the statement's beginning; should the statement
 * wait for a lock after that, whoever had it has changed the token.
 */
const held = `i.[State] = 1 AND i.[LockedUntilUtc] > ${now}`;

/** A success is no failure, so the claim's count is taken back. */
const processed = `[State] = 2, [ProcessedAtUtc] = ${now},
  [RetryCount] = CASE WHEN i.[RetryCount] > 0 THEN i.[RetryCount] - 1 ELSE 0 END,
  [NextAttemptAtUtc] = NULL, [LockToken] = NULL, [LockedUntilUtc] = NULL, [LostLeases] = 0, [LastError] = NULL`;

/** Marks an unkeyed message, `@p1` id and `@p2` token, in the handler's transaction. */
export function markProcessed(names: Names): string {
  return `
UPDATE i SET ${processed}
OUTPUT 1 AS [done]
FROM ${names.inbox} AS i WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)
WHERE i.[Id] = CONVERT(UNIQUEIDENTIFIER, @p1) AND i.[LockToken] = CONVERT(UNIQUEIDENTIFIER, @p2) AND ${held}`;
}

/**
 * Marks a keyed message, `@p1` id and `@p2` token, of the key with digest `@p3`, and names the key's next head. The key is
 * locked first, by a statement of its own: the next one sees what the key's last holder committed.
 */
export function markKeyedProcessed(names: Names): string {
  return `
DECLARE @locked INT;
SELECT @locked = 1 FROM ${names.keys} AS k ${changing} WHERE k.[KeyDigest] = ${digestGiven('@p3')};
DECLARE @done TABLE ([Id] UNIQUEIDENTIFIER NOT NULL);
UPDATE i SET ${processed}
OUTPUT inserted.[Id] INTO @done ([Id])
FROM ${names.inbox} AS i WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)
WHERE i.[Id] = CONVERT(UNIQUEIDENTIFIER, @p1) AND i.[LockToken] = CONVERT(UNIQUEIDENTIFIER, @p2) AND ${held};
${wayOn(names)}
SELECT (SELECT TOP (1) n.[HeadType] FROM @next AS n WHERE n.[Due] = 1) AS [next_type] FROM @done AS d;`;
}

/** A wait in seconds from now, cut at ten years: an instant that no column holds would fail the whole batch. */
const after = (seconds: string): string => {
  const wait = `CASE WHEN ${seconds} > 315360000 THEN 315360000 WHEN ${seconds} < 0 THEN 0 ELSE ${seconds} END`;
  return `DATEADD(millisecond, CONVERT(INT, (${wait} - FLOOR(${wait})) * 1000), DATEADD(second, CONVERT(INT, FLOOR(${wait})), ${now}))`;
};

/**
 * Writes failures: `@p1` JSON array of ids, tokens, reasons, and seconds to the next attempt or null to end at once;
 * `@p2` whether a Failed message blocks its key. Keyed ones under their keys' locks, with `refreshKeys` after it.
 */
export function markFailed(names: Names): string {
  const ends = '(f.[wait] IS NULL OR i.[RetryCount] > i.[MaxRetries])';
  return `
UPDATE i SET
  [State] = CASE WHEN ${ends} THEN 3 ELSE 0 END,
  [ProcessedAtUtc] = CASE WHEN ${ends} THEN ${now} END,
  [NextAttemptAtUtc] = CASE WHEN NOT ${ends} THEN ${after('f.[wait]')} END,
  [Held] = CASE WHEN ${ends} AND @p2 = 1 AND i.[PartitionKey] IS NOT NULL THEN 1 ELSE 0 END,
  [LastError] = f.[reason], [LockToken] = NULL, [LockedUntilUtc] = NULL, [LostLeases] = 0
OUTPUT ${idText('inserted.[Id]')} AS [id], CASE WHEN inserted.[State] = 3 THEN 1 ELSE 0 END AS [ended]
FROM OPENJSON(@p1) WITH ([id] UNIQUEIDENTIFIER '$.id', [token] UNIQUEIDENTIFIER '$.token',
  [reason] NVARCHAR(MAX) '$.reason', [wait] FLOAT '$.wait') AS f
INNER LOOP JOIN ${names.inbox} AS i WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON i.[Id] = f.[id]
WHERE i.[LockToken] = f.[token] AND ${held}`;
}

/**
 * Gives messages back, due at once and not counted: `@p1` JSON array of ids and tokens. A next attempt that has come stays
 * in the past. `LostLeases` stays too: one that was claimed alone and not begun is to be claimed alone again.
 */
export function release(names: Names): string {
  return `
UPDATE i SET [State] = 0, [RetryCount] = CASE WHEN i.[RetryCount] > 0 THEN i.[RetryCount] - 1 ELSE 0 END,
  [LockToken] = NULL, [LockedUntilUtc] = NULL
OUTPUT ${idText('inserted.[Id]')} AS [id], 0 AS [ended]
FROM OPENJSON(@p1) WITH ([id] UNIQUEIDENTIFIER '$.id', [token] UNIQUEIDENTIFIER '$.token') AS a
INNER LOOP JOIN ${names.inbox} AS i WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON i.[Id] = a.[id]
WHERE i.[LockToken] = a.[token] AND ${held}`;
}
