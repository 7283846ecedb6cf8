import type { Names } from '../names.ts';
import { BUCKETS } from './buckets.ts';
import { passing, paused, someDue, unclaimed } from './outbox-predicates.ts';
import { now } from './time.ts';

/**
 * Goes through the lanes that have unfinished rows which are not held, each in `@lane`. A loop, each step one descent of
 * the index for either state: a DISTINCT would read every row of the lanes, and a recursive query may have no TOP.
 * Lanes are compared as variables, never column with column: the outbox's collation may be another than ours.
 */
function eachLane(names: Names, body: string): string {
  const first = (state: number): string =>
    `SELECT * FROM (SELECT TOP (1) o.[Destination] FROM ${names.outbox} AS o ${passing(names, 'due')}
    WHERE o.[Held] = 0 AND o.[State] = ${state} AND o.[Destination] > @lane ORDER BY o.[Destination]) AS s${state}`;
  return `
DECLARE @lane NVARCHAR(300) = N'', @next NVARCHAR(300);
WHILE 1 = 1
BEGIN
  SELECT @next = MIN(f.[Destination]) FROM (
    ${first(0)}
    UNION ALL
    ${first(1)}
  ) AS f;
  IF @next IS NULL BREAK;
  SET @lane = @next;
${body}
END;`;
}

const someBucketDue = (names: Names): string =>
  `EXISTS (SELECT 1 FROM ${BUCKETS} WHERE ${someDue(names, '@lane', 'n.[Bucket]')})`;

/**
 * Lanes with due rows, and for each whether it is ready or to be probed. Paused lanes, and open ones whose pause or
 * probe runs, are left out. The lanes' rows are not read: each step is a descent of an index.
 */
export function dueLanesSql(names: Names): string {
  return `
SET NOCOUNT ON;
DECLARE @due TABLE ([Destination] NVARCHAR(300) NOT NULL, [State] NVARCHAR(10) NOT NULL);${eachLane(
    names,
    `  IF ${someBucketDue(names)}
    INSERT INTO @due ([Destination], [State])
    SELECT @lane, CASE WHEN l.[OpenUntilUtc] IS NULL THEN N'ready' ELSE N'probe' END
    FROM (SELECT 1 AS [one]) AS a LEFT JOIN ${names.lanes} AS l WITH (READCOMMITTEDLOCK, ROWLOCK) ON l.[Destination] = @lane
    WHERE l.[Destination] IS NULL OR (NOT ${paused('l')} AND (l.[OpenUntilUtc] IS NULL
      OR (l.[OpenUntilUtc] <= ${now} AND (l.[ProbeUntilUtc] IS NULL OR l.[ProbeUntilUtc] <= ${now}))));`,
  )}
SELECT d.[Destination] AS [destination], d.[State] AS [state] FROM @due AS d ORDER BY d.[Destination];`;
}

/** Later than anything: what a person's pause without an end waits for. */
const never = "CONVERT(DATETIMEOFFSET, '9999-12-31T23:59:59+00:00')";

/**
 * Seconds until something comes due that isn't yet: a waiting row, a bucket in another's hands, another program's claim,
 * the end of a lane's pause. What waits behind two of these counts with the later one.
 */
export function secondsToNextDueSql(names: Names): string {
  const row = `FROM ${names.outbox} AS o ${passing(names, 'due')} WHERE o.[Held] = 0 AND o.[Destination] = @lane`;
  return `
SET NOCOUNT ON;
DECLARE @now DATETIMEOFFSET = ${now}, @closed DATETIMEOFFSET;
DECLARE @moments TABLE ([At] DATETIMEOFFSET NOT NULL);${eachLane(
    names,
    `  SET @closed = NULL;
  SELECT @closed = (
    SELECT MAX(m.[At]) FROM (VALUES (l.[OpenUntilUtc]), (l.[ProbeUntilUtc]),
      (CASE WHEN ${paused('l')} THEN ISNULL(l.[PausedUntilUtc], ${never}) END)) AS m ([At]))
  FROM ${names.lanes} AS l WITH (READCOMMITTEDLOCK, ROWLOCK)
  WHERE l.[Destination] = @lane AND (l.[OpenUntilUtc] IS NOT NULL OR ${paused('l')});
  INSERT INTO @moments ([At])
  SELECT (SELECT MAX(v.[At]) FROM (VALUES (m.[At]), (@closed), (@now)) AS v ([At]))
  FROM (
    SELECT CASE WHEN b.[LockedUntilUtc] > w.[At] THEN b.[LockedUntilUtc] ELSE w.[At] END AS [At]
    FROM ${BUCKETS}
    CROSS APPLY (SELECT TOP (1) o.[NextAttemptAtUtc] AS [At] ${row} AND o.[State] = 0 AND o.[Bucket] = n.[Bucket]
      AND o.[NextAttemptAtUtc] IS NOT NULL ORDER BY o.[NextAttemptAtUtc]) AS w
    LEFT JOIN ${names.leases} AS b WITH (READCOMMITTEDLOCK, ROWLOCK) ON b.[Destination] = @lane AND b.[Bucket] = n.[Bucket]
    UNION ALL
    SELECT b.[LockedUntilUtc] FROM ${names.leases} AS b WITH (READCOMMITTEDLOCK, ROWLOCK)
    WHERE b.[Destination] = @lane AND b.[LockedUntilUtc] > @now AND EXISTS (
      SELECT 1 ${row} AND o.[State] = 0 AND o.[Bucket] = b.[Bucket] AND o.[NextAttemptAtUtc] IS NULL)
    UNION ALL
    SELECT o.[LockedUntilUtc] ${row} AND o.[State] = 1 AND NOT ${unclaimed('o')}
    UNION ALL
    SELECT @closed WHERE @closed IS NOT NULL AND ${someBucketDue(names)}
  ) AS m;`,
  )}
SELECT MIN(DATEDIFF_BIG(millisecond, @now, m.[At])) / 1000.0 AS [seconds] FROM @moments AS m WHERE m.[At] < ${never};`;
}
