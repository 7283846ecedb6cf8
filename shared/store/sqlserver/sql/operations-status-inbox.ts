import { binary, type Names } from '../names.ts';
import { by, free, iso, looking, type NamedIndex, paused } from './inbox-shared.ts';
import { age, flag, looseScan, scanLimit } from './operations-shared.ts';
import { now } from './time.ts';

const ready = (alias: string): string =>
  `${alias}.[ProcessedAtUtc] IS NULL AND ${alias}.[NextAttemptAtUtc] IS NULL AND ${alias}.[PartitionKey] IS NULL`;
const waiting = (alias: string): string =>
  `${alias}.[ProcessedAtUtc] IS NULL AND ${alias}.[NextAttemptAtUtc] IS NOT NULL AND ${alias}.[PartitionKey] IS NULL`;
const keyed = (alias: string): string =>
  `${alias}.[PartitionKey] IS NOT NULL AND ${alias}.[State] IN (0, 1, 3) AND ${alias}.[ProcessedAtUtc] IS NULL`;
const keysDue = (alias: string): string => `${alias}.[Blocked] = 0 AND ${alias}.[NextAttemptAtUtc] IS NULL`;
const keysWaiting = (alias: string): string =>
  `${alias}.[Blocked] = 0 AND ${alias}.[NextAttemptAtUtc] IS NOT NULL`;

const keep = `INSERT INTO @lanes ([LaneDigest], [Consumer], [MessageType])
  SELECT @next, ISNULL(@consumer, N''), @type WHERE NOT EXISTS (SELECT 1 FROM @lanes AS l WHERE l.[LaneDigest] = @next);`;

/**
 * Fills `@lanes` with the lanes of the inbox that have anything to say. Types that stand only behind other types' messages
 * of their keys are found among the first keyed rows. `@p1`: at most so many.
 */
function inboxLanes(names: Names): string {
  const scans = [
    { table: names.inbox, type: 'MessageType', index: 'inbox_index_ready', where: ready('t') },
    { table: names.inbox, type: 'MessageType', index: 'inbox_index_waiting', where: waiting('t') },
    { table: names.keys, type: 'HeadType', index: 'keys_index_due', where: keysDue('t') },
    { table: names.keys, type: 'HeadType', index: 'keys_index_waiting', where: keysWaiting('t') },
  ] as const;
  const probes = scans.map(({ table, type, index, where }) =>
    looseScan({
      first: '0x',
      probe: `SELECT TOP (1) @next = t.[LaneDigest], @consumer = t.[Consumer], @type = t.[${type}]
  FROM ${table} AS t ${by(looking, names, index)} WHERE ${where} AND t.[LaneDigest] > @place ORDER BY t.[LaneDigest];`,
      keep,
      limit: '@p1',
    }),
  );
  const failedOnes = by(looking, names, 'inbox_index_failed');
  // The index of Failed ones is by the lane's texts, in which pages of them are asked for.
  const failed = looseScan({
    first: '0x',
    probe: `SELECT TOP (1) @next = t.[LaneDigest], @consumer = t.[Consumer], @type = t.[MessageType]
  FROM ${names.inbox} AS t ${failedOnes} WHERE t.[State] = 3 AND t.[Consumer] = @consumer AND t.[MessageType] > @type ORDER BY t.[MessageType];
  IF @next IS NULL
    SELECT TOP (1) @next = t.[LaneDigest], @consumer = t.[Consumer], @type = t.[MessageType]
    FROM ${names.inbox} AS t ${failedOnes} WHERE t.[State] = 3 AND t.[Consumer] > @consumer ORDER BY t.[Consumer], t.[MessageType];`,
    keep,
    limit: '@p1',
  });
  const byKey = by(looking, names, 'inbox_index_key');
  const rest = (from: string): string => `INSERT INTO @lanes ([LaneDigest], [Consumer], [MessageType])
SELECT TOP (@p1) s.[LaneDigest], MIN(ISNULL(s.[Consumer], N'')), MIN(s.[MessageType]) FROM ${from} AS s
WHERE NOT EXISTS (SELECT 1 FROM @lanes AS l WHERE l.[LaneDigest] = s.[LaneDigest])
GROUP BY s.[LaneDigest];`;
  return `DECLARE @lanes TABLE ([LaneDigest] BINARY(32) NOT NULL PRIMARY KEY, [Consumer] NVARCHAR(200) NOT NULL, [MessageType] NVARCHAR(200) NOT NULL);
DECLARE @place BINARY(32), @next BINARY(32), @consumer NVARCHAR(200), @type NVARCHAR(200);
${probes.join('\n')}
SELECT @consumer = N'', @type = N'';
${failed}
${rest(`(SELECT TOP (${scanLimit}) i.[LaneDigest], i.[Consumer], i.[MessageType] FROM ${names.inbox} AS i ${byKey} WHERE ${keyed('i')})`)}
${rest(names.inboxLanes)}`;
}

/** Figures of every lane: bounded scans of parts of indexes only. */
export function inboxStatus(names: Names): string {
  const rows = (where: string, index: NamedIndex): string =>
    `${names.inbox} AS i ${by(looking, names, index)} WHERE i.[LaneDigest] = l.[LaneDigest] AND ${where}`;
  const keys = (where: string, index: NamedIndex): string =>
    `${names.keys} AS k ${by(looking, names, index)} WHERE k.[LaneDigest] = l.[LaneDigest] AND ${where}`;
  const counted = (from: string): string => `(
  SELECT ISNULL(SUM(s.[Free]), 0) AS [Free], COUNT(*) - ISNULL(SUM(s.[Free]), 0) AS [Busy],
    ISNULL(SUM(CASE WHEN s.[Free] = 1 THEN s.[Claimed] ELSE 0 END), 0) AS [Expired]
  FROM (${from}) AS s
)`;
  // A row that another program ended without saying when is still in these indexes; maintenance mends that.
  const ofRows = (where: string, index: NamedIndex): string =>
    counted(
      `SELECT TOP (${scanLimit}) CASE WHEN ${free('i')} THEN 1 ELSE 0 END AS [Free], CASE WHEN i.[State] = 1 THEN 1 ELSE 0 END AS [Claimed] FROM ${rows(`${where} AND i.[State] < 2`, index)}`,
    );
  const ofKeys = (where: string, index: NamedIndex): string =>
    counted(
      `SELECT TOP (${scanLimit}) CASE WHEN k.[LockedUntilUtc] <= ${now} THEN 1 ELSE 0 END AS [Free], CASE WHEN k.[LockToken] IS NOT NULL THEN 1 ELSE 0 END AS [Claimed] FROM ${keys(where, index)}`,
    );
  // By the texts first, which their index is of; the digest beside them tells types that differ only in case apart.
  const failedOfLane = `i.[State] = 3 AND i.[Consumer] = ${binary('l.[Consumer]')} AND i.[MessageType] = ${binary('l.[MessageType]')}`;
  const head = `SELECT TOP (1) i.[CreatedAtUtc] AS [Since] FROM ${names.inbox} AS i ${looking}
      WHERE i.[PartitionKey] IS NOT NULL AND i.[State] IN (0, 1, 3) AND i.[KeyDigest] = k.[KeyDigest] AND i.[Sequence] = k.[HeadSequence]`;
  return `
${inboxLanes(names)}
SELECT l.[Consumer] AS [consumer], l.[MessageType] AS [message_type],
  r.[Free] AS [ready_due], r.[Busy] AS [ready_busy], c.[Free] AS [come_due], c.[Busy] AS [come_busy], w.[Free] + w.[Busy] AS [waiting],
  kr.[Free] AS [keys_due], kr.[Busy] AS [keys_busy], kc.[Free] AS [keys_come], kc.[Busy] AS [keys_come_busy],
  r.[Expired] + c.[Expired] + kr.[Expired] + kc.[Expired] AS [expired], kw.[Free] AS [keys_waiting], kw.[Busy] AS [keys_waiting_busy],
  ISNULL(h.[Held], 0) AS [held], ISNULL(h.[Seen], 0) AS [held_seen], f.[Failed] AS [failed], f.[Blocked] AS [blocked],
  ${age('a.[Since]')} AS [oldest_due_seconds], ${age('n.[LastClaimAtUtc]')} AS [last_claim_seconds],
  ${flag(paused('n'))} AS [paused], n.[PausedBy] AS [paused_by], n.[PausedReason] AS [paused_reason],
  ${iso('n.[PausedAtUtc]')} AS [paused_at], ${iso('n.[PausedUntilUtc]')} AS [paused_until]
FROM @lanes AS l
LEFT JOIN ${names.inboxLanes} AS n ON n.[LaneDigest] = l.[LaneDigest]
CROSS APPLY ${ofRows(ready('i'), 'inbox_index_ready')} AS r
CROSS APPLY ${ofRows(`${waiting('i')} AND i.[NextAttemptAtUtc] <= ${now}`, 'inbox_index_waiting')} AS c
CROSS APPLY ${ofRows(`${waiting('i')} AND i.[NextAttemptAtUtc] > ${now}`, 'inbox_index_waiting')} AS w
CROSS APPLY ${ofKeys(keysDue('k'), 'keys_index_due')} AS kr
CROSS APPLY ${ofKeys(`${keysWaiting('k')} AND k.[NextAttemptAtUtc] <= ${now}`, 'keys_index_waiting')} AS kc
CROSS APPLY ${ofKeys(`${keysWaiting('k')} AND k.[NextAttemptAtUtc] > ${now}`, 'keys_index_waiting')} AS kw
CROSS APPLY (
  SELECT COUNT(*) AS [Failed], ISNULL(SUM(s.[Held]), 0) AS [Blocked] FROM (
    SELECT TOP (${scanLimit}) CONVERT(INT, ISNULL(i.[Held], 0)) AS [Held] FROM ${rows(failedOfLane, 'inbox_index_failed')}
  ) AS s
) AS f
LEFT JOIN (
  -- What stands behind its key's head. One bounded scan for all lanes: keyed rows are ordered by key, not by type.
  SELECT i.[LaneDigest], SUM(CASE WHEN k.[HeadSequence] IS NULL THEN 1 ELSE 0 END) AS [Held], MAX(i.[Total]) AS [Seen] FROM (
    SELECT s.*, COUNT(*) OVER () AS [Total] FROM (
      SELECT TOP (${scanLimit}) i.[LaneDigest], i.[KeyDigest], i.[Sequence] FROM ${names.inbox} AS i ${by(looking, names, 'inbox_index_key')} WHERE ${keyed('i')}
    ) AS s
  ) AS i
  LEFT JOIN ${names.keys} AS k ON k.[KeyDigest] = i.[KeyDigest] AND k.[HeadSequence] = i.[Sequence] AND k.[Blocked] = 0
  GROUP BY i.[LaneDigest]
) AS h ON h.[LaneDigest] = l.[LaneDigest]
OUTER APPLY (SELECT TOP (1) i.[CreatedAtUtc] AS [Since] FROM ${rows(`${ready('i')} AND ${free('i')}`, 'inbox_index_ready')} ORDER BY i.[Sequence]) AS a1
OUTER APPLY (
  SELECT TOP (1) i.[NextAttemptAtUtc] AS [Since] FROM ${rows(`${waiting('i')} AND ${free('i')} AND i.[NextAttemptAtUtc] <= ${now}`, 'inbox_index_waiting')}
  ORDER BY i.[NextAttemptAtUtc]
) AS a2
OUTER APPLY (
  SELECT TOP (1) (${head}) AS [Since] FROM ${keys(`${keysDue('k')} AND k.[LockedUntilUtc] <= ${now}`, 'keys_index_due')} ORDER BY k.[HeadSequence]
) AS a3
OUTER APPLY (
  SELECT TOP (1) k.[NextAttemptAtUtc] AS [Since] FROM ${keys(`${keysWaiting('k')} AND k.[LockedUntilUtc] <= ${now} AND k.[NextAttemptAtUtc] <= ${now}`, 'keys_index_waiting')}
  ORDER BY k.[NextAttemptAtUtc]
) AS a4
CROSS APPLY (SELECT MIN(t.[Since]) AS [Since] FROM (VALUES (a1.[Since]), (a2.[Since]), (a3.[Since]), (a4.[Since])) AS t([Since])) AS a
ORDER BY l.[Consumer], l.[MessageType];`;
}
