import type { Names } from '../names.ts';
import { paused } from './outbox-predicates.ts';
import { later, now } from './time.ts';

/**
 * Opens a lane, unless it is open: then neither its pause nor its count changes. `@p1` lane, `@p2` reason,
 * `@p3` milliseconds, `@p4` tried ids. None of the statements here touches a person's columns.
 *
 * A lane is opened for the first time once in its life, so the range lock of the second statement troubles nobody.
 */
export function openLaneSql(names: Names): string {
  return `
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @opened INT = 0;
BEGIN TRANSACTION;
UPDATE l SET [Failures] = 1, [OpenUntilUtc] = ${later('@p3')}, [OpenedAtUtc] = ${now}, [LastError] = @p2, [Tried] = @p4,
  [ProbeToken] = NULL, [ProbeUntilUtc] = NULL
FROM ${names.lanes} AS l WITH (UPDLOCK, HOLDLOCK, ROWLOCK)
WHERE l.[Destination] = @p1 AND l.[OpenUntilUtc] IS NULL;
SET @opened = @@ROWCOUNT;
IF @opened = 0
BEGIN
  INSERT INTO ${names.lanes} ([Destination], [Failures], [OpenUntilUtc], [OpenedAtUtc], [LastError], [Tried])
  SELECT @p1, 1, ${later('@p3')}, ${now}, @p2, @p4
  WHERE NOT EXISTS (SELECT 1 FROM ${names.lanes} AS l WITH (UPDLOCK, HOLDLOCK, ROWLOCK) WHERE l.[Destination] = @p1);
  SET @opened = @@ROWCOUNT;
END;
COMMIT TRANSACTION;
SELECT @opened AS [opened];`;
}

/** Wins the probe of an open lane whose pause is over; one of many, since the row is looked at under its lock. `@p1` lane, `@p2` milliseconds, `@p3` token. */
export function takeProbeSql(names: Names): string {
  return `
UPDATE l SET [ProbeToken] = CONVERT(UNIQUEIDENTIFIER, @p3), [ProbeUntilUtc] = ${later('@p2')}
OUTPUT inserted.[Failures] AS [failures], inserted.[Tried] AS [tried]
FROM ${names.lanes} AS l WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK)
WHERE l.[Destination] = @p1 AND l.[OpenUntilUtc] <= ${now} AND NOT ${paused('l')}
  AND (l.[ProbeUntilUtc] IS NULL OR l.[ProbeUntilUtc] <= ${now});`;
}

/** Closes the lane. The last error stays, for whoever asks later what it was. `@p1` lane, `@p2` token. */
export function probePassedSql(names: Names): string {
  return fenced(
    names,
    "[Failures] = 0, [OpenUntilUtc] = NULL, [OpenedAtUtc] = NULL, [Tried] = N'[]', [ProbeToken] = NULL, [ProbeUntilUtc] = NULL",
  );
}

/** Keeps the lane open for longer, and remembers what was tried. `@p1` lane, `@p2` token, `@p3` reason, `@p4` milliseconds, `@p5` all tried ids. */
export function probeFailedSql(names: Names): string {
  return fenced(
    names,
    `[Failures] = l.[Failures] + 1, [OpenUntilUtc] = ${later('@p4')}, [LastError] = @p3, [Tried] = @p5, [ProbeToken] = NULL, [ProbeUntilUtc] = NULL`,
  );
}

/** Gives the probe back. `@p1` lane, `@p2` token. */
export function probeAbandonedSql(names: Names): string {
  return fenced(names, '[ProbeToken] = NULL, [ProbeUntilUtc] = NULL');
}

function fenced(names: Names, assignments: string): string {
  return `
UPDATE l SET ${assignments}
OUTPUT 1 AS [done]
FROM ${names.lanes} AS l WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK)
WHERE l.[Destination] = @p1 AND l.[ProbeToken] = CONVERT(UNIQUEIDENTIFIER, @p2) AND l.[ProbeUntilUtc] > ${now};`;
}
