import type { Names } from '../names.ts';
import { by, digestGiven, looking, type NamedIndex } from './inbox-shared.ts';
import { never, now } from './time.ts';

/** Rows in hand stand at the front of their index; so many are looked through for one that isn't. */
const look = 1000;

/** Further away than any wait: a retry's is cut at ten years, and so many milliseconds are not counted one by one. */
const seconds = (at: string): string =>
  `CASE WHEN ${at} <= ${now} THEN 0 ELSE DATEDIFF_BIG(millisecond, ${now}, ${at}) / 1000.0E0 END`;

/**
 * Seconds until something of the type may be claimed: `@p1` digest of the lane. Zero where something may be now, null
 * where nothing waits or where a person has paused the type without an end. Each part reads the front of one index.
 */
export function secondsToNextDue(names: Names): string {
  const lane = digestGiven('@p1');
  const row = `i.[LaneDigest] = ${lane} AND i.[ProcessedAtUtc] IS NULL AND i.[PartitionKey] IS NULL`;
  const key = `i.[LaneDigest] = ${lane} AND i.[Blocked] = 0`;
  const front = (at: string, from: string, order: string): string =>
    `SELECT ${seconds('f.[At]')} AS [S] FROM (SELECT TOP (${look}) ${at} AS [At] FROM ${from} ORDER BY ${order}) AS f`;
  const next = (from: string): string =>
    `SELECT ${seconds('f.[At]')} FROM (SELECT TOP (1) i.[NextAttemptAtUtc] AS [At] FROM ${from} AND i.[NextAttemptAtUtc] IS NOT NULL AND i.[NextAttemptAtUtc] > ${now} ORDER BY i.[NextAttemptAtUtc]) AS f`;
  const leasedUntil = `COALESCE(CASE WHEN i.[State] = 1 THEN i.[LockedUntilUtc] END, ${never})`;
  const inbox = (index: NamedIndex): string =>
    `${names.inbox} AS i ${by(looking, names, index)} WHERE ${row}`;
  const keys = (index: NamedIndex): string => `${names.keys} AS i ${by(looking, names, index)} WHERE ${key}`;
  const come = `AND i.[NextAttemptAtUtc] IS NOT NULL AND i.[NextAttemptAtUtc] <= ${now}`;
  return `
SELECT CASE WHEN p.[Endless] = 1 THEN NULL WHEN d.[S] < p.[S] THEN p.[S] ELSE d.[S] END AS [seconds]
FROM (
  SELECT MIN(u.[S]) AS [S] FROM (
    ${front(leasedUntil, `${inbox('inbox_index_ready')} AND i.[NextAttemptAtUtc] IS NULL`, 'i.[Sequence]')}
    UNION ALL ${front(leasedUntil, `${inbox('inbox_index_waiting')} ${come}`, 'i.[NextAttemptAtUtc]')}
    UNION ALL ${next(inbox('inbox_index_waiting'))}
    UNION ALL ${front('i.[LockedUntilUtc]', `${keys('keys_index_due')} AND i.[NextAttemptAtUtc] IS NULL`, 'i.[HeadSequence]')}
    UNION ALL ${front('i.[LockedUntilUtc]', `${keys('keys_index_waiting')} ${come}`, 'i.[NextAttemptAtUtc]')}
    UNION ALL ${next(keys('keys_index_waiting'))}
  ) AS u
) AS d
CROSS JOIN (
  SELECT COALESCE(MAX(CASE WHEN l.[PausedUntilUtc] IS NULL THEN 1 ELSE 0 END), 0) AS [Endless],
    COALESCE(MAX(${seconds('l.[PausedUntilUtc]')}), 0) AS [S]
  FROM ${names.inboxLanes} AS l WHERE l.[LaneDigest] = ${lane} AND l.[PausedAtUtc] IS NOT NULL
) AS p
WHERE d.[S] IS NOT NULL`;
}
