import type { Names } from '../names.ts';
import { iso, paused } from './inbox-shared.ts';
import { age, buckets, flag, looseScan, scanLimit } from './operations-shared.ts';
import { passing } from './outbox-predicates.ts';
import { now } from './time.ts';

/** Not in another program's hands: its claim has run out, or never was. */
const unclaimed = `(o.[State] = 0 OR o.[LockedUntilUtc] IS NULL OR o.[LockedUntilUtc] <= ${now})`;

/** Parts of the index over what is due: what stands at the front of each says which lanes have something to say. */
const parts = [
  [0, 0],
  [0, 1],
  [0, 3],
  [1, 0],
  [1, 1],
  [1, 3],
] as const;

/**
 * Fills `@lanes` with the destinations that have anything to say: unfinished or Failed rows, a pause, an open breaker. Loose
 * scans, so that neither history nor a lane's length costs anything. `@p1`: at most so many.
 */
function outboxLanes(names: Names): string {
  const scans = parts.map(([held, state]) =>
    looseScan({
      first: "N''",
      probe: `SELECT TOP (1) @next = o.[Destination] FROM ${names.outbox} AS o ${passing(names, 'due')}
    WHERE o.[Held] = ${held} AND o.[State] = ${state} AND o.[Destination] > @place ORDER BY o.[Destination];`,
      keep: 'INSERT INTO @lanes ([Destination]) SELECT @next WHERE NOT EXISTS (SELECT 1 FROM @lanes AS l WHERE l.[Destination] = @next);',
      limit: '@p1',
    }),
  );
  return `DECLARE @lanes TABLE ([Destination] NVARCHAR(300) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY);
DECLARE @place NVARCHAR(300), @next NVARCHAR(300);
${scans.join('\n')}
INSERT INTO @lanes ([Destination])
SELECT TOP (@p1) n.[Destination] FROM ${names.lanes} AS n
WHERE (n.[OpenUntilUtc] IS NOT NULL OR ${paused('n')}) AND NOT EXISTS (SELECT 1 FROM @lanes AS l WHERE l.[Destination] = n.[Destination])
ORDER BY n.[Destination];`;
}

/**
 * Figures of every lane. Each count is a bounded scan of one part of an index. Lane by lane, with the destination in a
 * variable: a comparison with that is under the column's own collation, whoever made the table, and so by its index.
 */
export function outboxStatus(names: Names): string {
  const of = (where: string): string =>
    `${names.outbox} AS o ${passing(names, 'due')} WHERE o.[Destination] = @place AND ${where}`;
  const byBucket = (when: string): string => `(
    SELECT ISNULL(SUM(s.[Free]), 0) AS [Free], COUNT(*) - ISNULL(SUM(s.[Free]), 0) AS [Busy] FROM (
      SELECT TOP (${scanLimit}) x.[Free] FROM ${buckets} CROSS APPLY (
        SELECT TOP (${scanLimit}) CASE WHEN ${unclaimed} THEN 1 ELSE 0 END AS [Free]
        FROM ${of(`o.[Held] = 0 AND o.[State] IN (0, 1) AND o.[Bucket] = b.[Bucket] AND o.[NextAttemptAtUtc] ${when}`)}
      ) AS x
    ) AS s
  )`;
  const first = (state: number): string => `OUTER APPLY (
      SELECT TOP (1) o.[CreatedAtUtc] AS [Since]
      FROM ${of(`o.[Held] = 0 AND o.[State] = ${state} AND o.[Bucket] = b.[Bucket] AND o.[NextAttemptAtUtc] IS NULL AND ${unclaimed}`)}
      ORDER BY o.[Sequence]
    ) AS f${state} OUTER APPLY (
      SELECT TOP (1) o.[NextAttemptAtUtc] AS [Since]
      FROM ${of(`o.[Held] = 0 AND o.[State] = ${state} AND o.[Bucket] = b.[Bucket] AND o.[NextAttemptAtUtc] <= ${now} AND ${unclaimed}`)}
      ORDER BY o.[NextAttemptAtUtc]
    ) AS c${state}`;
  return `
${outboxLanes(names)}
DECLARE @figures TABLE ([Destination] NVARCHAR(300) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, [ReadyDue] INT NOT NULL,
  [ReadyBusy] INT NOT NULL, [ComeDue] INT NOT NULL, [ComeBusy] INT NOT NULL, [Waiting] INT NOT NULL, [Held] INT NOT NULL,
  [Failed] INT NOT NULL, [Blocked] INT NOT NULL, [Since] DATETIMEOFFSET NULL);
DECLARE @at NVARCHAR(300) = N'';
WHILE 1 = 1
BEGIN
  SET @next = NULL;
  SELECT TOP (1) @next = l.[Destination] FROM @lanes AS l WHERE l.[Destination] > @at ORDER BY l.[Destination];
  IF @next IS NULL BREAK;
  SET @at = @next;
  SET @place = @next;
  INSERT INTO @figures ([Destination], [ReadyDue], [ReadyBusy], [ComeDue], [ComeBusy], [Waiting], [Held], [Failed], [Blocked], [Since])
  SELECT @place, r.[Free], r.[Busy], c.[Free], c.[Busy], w.[Free] + w.[Busy], h.[Held], f.[Failed], f.[Blocked], a.[Since]
  FROM ${byBucket('IS NULL')} AS r
  CROSS JOIN ${byBucket(`<= ${now}`)} AS c
  CROSS JOIN ${byBucket(`> ${now}`)} AS w
  CROSS JOIN (SELECT COUNT(*) AS [Held] FROM (
    SELECT TOP (${scanLimit}) 1 AS [One] FROM ${of('o.[Held] = 1 AND o.[State] IN (0, 1)')}
  ) AS s) AS h
  CROSS JOIN (SELECT COUNT(*) AS [Failed], ISNULL(SUM(s.[Held]), 0) AS [Blocked] FROM (
    SELECT TOP (${scanLimit}) CONVERT(INT, o.[Held]) AS [Held] FROM ${of('o.[Held] IN (0, 1) AND o.[State] = 3')}
  ) AS s) AS f
  CROSS JOIN (
    SELECT MIN(t.[Since]) AS [Since] FROM ${buckets}
    ${first(0)} ${first(1)}
    CROSS APPLY (VALUES (f0.[Since]), (c0.[Since]), (f1.[Since]), (c1.[Since])) AS t([Since])
  ) AS a;
END;
SELECT f.[Destination] AS [destination], f.[ReadyDue] AS [ready_due], f.[ReadyBusy] AS [ready_busy], f.[ComeDue] AS [come_due],
  f.[ComeBusy] AS [come_busy], f.[Waiting] AS [waiting], f.[Held] AS [held], f.[Held] AS [held_seen], f.[Failed] AS [failed],
  f.[Blocked] AS [blocked],
  (SELECT COUNT(*) FROM ${names.leases} AS s WHERE s.[Destination] = f.[Destination] AND s.[LockedUntilUtc] > ${now}) AS [leased_buckets],
  (SELECT COUNT(*) FROM ${names.leases} AS s WHERE s.[Destination] = f.[Destination] AND s.[LockToken] IS NOT NULL AND s.[LockedUntilUtc] <= ${now}) AS [expired],
  ${age('f.[Since]')} AS [oldest_due_seconds], n.[Failures] AS [failures], n.[LastError] AS [last_error],
  ${iso('n.[OpenedAtUtc]')} AS [opened_at], ${iso('n.[OpenUntilUtc]')} AS [open_until], ${flag(paused('n'))} AS [paused],
  n.[PausedBy] AS [paused_by], n.[PausedReason] AS [paused_reason], ${iso('n.[PausedAtUtc]')} AS [paused_at],
  ${iso('n.[PausedUntilUtc]')} AS [paused_until]
FROM @figures AS f LEFT JOIN ${names.lanes} AS n ON n.[Destination] = f.[Destination]
ORDER BY f.[Destination];`;
}
