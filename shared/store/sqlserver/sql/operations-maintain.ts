import { pageKeys } from '../../operations/walk.ts';
import type { Names } from '../names.ts';
import { headOf } from './inbox-keys.ts';
import { by, claiming, digestFrom, idText, looking, type NamedIndex } from './inbox-shared.ts';
import { age, flag } from './operations-shared.ts';
import { besides } from './outbox-predicates.ts';
import { now } from './time.ts';

const batchLimit = 500;
/** How many rows that are due are looked through for ones that another program ended without saying when. */
const lookLimit = 50_000;

/**
 * Other programs may end a row without `ProcessedAtUtc`. In the outbox only retention would miss it: the index of ended
 * rows has those without an end first.
 */
export function normaliseOutbox(names: Names): string {
  const ended = (state: number): string => `SELECT * FROM (
    SELECT TOP (${batchLimit}) e.[Id] FROM ${names.outbox} AS e ${by(claiming, names, 'outbox_index_ended')} WHERE e.[State] = ${state} AND e.[ProcessedAtUtc] IS NULL
  ) AS e${state}`;
  return `
SET DEADLOCK_PRIORITY LOW;
UPDATE o SET [ProcessedAtUtc] = ${now}
FROM (${[2, 3, 4].map(ended).join(' UNION ALL ')}) AS b
INNER LOOP JOIN ${names.outbox} AS o WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON o.[Id] = b.[Id]
WHERE ${besides('o.[State] IN (2, 3, 4) AND o.[ProcessedAtUtc] IS NULL')}
OPTION (MAXDOP 1);
SELECT @@ROWCOUNT AS [changed];`;
}

/**
 * In the inbox such a row would also stay in the index of ready ones, and a Failed one say nothing of why: both are set
 * right.
 */
export function normaliseInbox(names: Names): string {
  const ended = (name: string, when: string, index: NamedIndex): string => `SELECT * FROM (
    SELECT TOP (${batchLimit}) f.[Id] FROM (
      SELECT TOP (${lookLimit}) e.[Id], e.[State] FROM ${names.inbox} AS e ${by(looking, names, index)}
      WHERE e.[ProcessedAtUtc] IS NULL AND e.[NextAttemptAtUtc] ${when} AND e.[PartitionKey] IS NULL
    ) AS f WHERE f.[State] >= 2
  ) AS ${name}`;
  return `
SET DEADLOCK_PRIORITY LOW;
UPDATE i SET [ProcessedAtUtc] = ${now},
  [LastError] = CASE WHEN i.[State] = 2 THEN NULL ELSE ISNULL(i.[LastError], N'ended by another program, without a reason') END
FROM (${ended('ready', 'IS NULL', 'inbox_index_ready')} UNION ALL ${ended('waiting', 'IS NOT NULL', 'inbox_index_waiting')}) AS b
INNER LOOP JOIN ${names.inbox} AS i WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON i.[Id] = b.[Id]
WHERE i.[State] >= 2 AND i.[ProcessedAtUtc] IS NULL
OPTION (MAXDOP 1);
SELECT @@ROWCOUNT AS [changed];`;
}

/**
 * A page of keys behind the place (`@p1`, hexadecimal digits), with whether the key's row says something else than its rows
 * do. Keys with a running lease are left alone: their holder sets them right.
 */
export function checkKeys(names: Names): string {
  return `
SELECT CONVERT(NCHAR(64), k.[KeyDigest], 2) AS [key],
  ${flag(`k.[LockedUntilUtc] <= ${now} AND (h.[Id] IS NULL OR ISNULL(h.[Sequence], 0) <> k.[HeadSequence] OR h.[LaneDigest] <> k.[LaneDigest]
    OR (CASE WHEN h.[State] = 3 THEN 1 ELSE 0 END) <> k.[Blocked]
    OR (h.[State] <> 3 AND ISNULL(h.[NextAttemptAtUtc], '0001-01-01') <> ISNULL(k.[NextAttemptAtUtc], '0001-01-01')))`)} AS [wrong]
FROM (
  SELECT TOP (${pageKeys}) * FROM ${names.keys} AS p ${looking} WHERE p.[KeyDigest] > ${digestFrom('@p1')} ORDER BY p.[KeyDigest]
) AS k
OUTER APPLY (${headOf(names, 'k.[KeyDigest]')}) AS h
ORDER BY k.[KeyDigest];`;
}

/**
 * A page of the keys that unfinished rows have, behind the place (`@p1`, hexadecimal digits); `missing` where the key has no
 * row of its own, so that no claim would find it, with the id of one of its messages.
 */
export function strandedKeys(names: Names): string {
  return `
SELECT CONVERT(NCHAR(64), p.[KeyDigest], 2) AS [key], ${flag('k.[KeyDigest] IS NULL AND h.[Id] IS NOT NULL')} AS [missing], ${idText('h.[Id]')} AS [id]
FROM (
  SELECT TOP (${pageKeys}) i.[KeyDigest] FROM ${names.inbox} AS i ${by(looking, names, 'inbox_index_key')}
  WHERE i.[PartitionKey] IS NOT NULL AND i.[State] IN (0, 1, 3) AND i.[KeyDigest] > ${digestFrom('@p1')}
  GROUP BY i.[KeyDigest] ORDER BY i.[KeyDigest]
) AS p
LEFT JOIN ${names.keys} AS k ON k.[KeyDigest] = p.[KeyDigest]
OUTER APPLY (${headOf(names, 'p.[KeyDigest]')}) AS h
ORDER BY p.[KeyDigest];`;
}

/** Notes a worker's successful cycle, at most once in ten seconds. `@p1` worker. */
export function recordCycle(names: Names): string {
  return `
UPDATE ${names.workers} WITH (ROWLOCK) SET [LastCycleAtUtc] = ${now}
WHERE [Worker] = @p1 AND [LastCycleAtUtc] <= DATEADD(second, -10, ${now});
IF @@ROWCOUNT = 0
  INSERT INTO ${names.workers} ([Worker], [LastCycleAtUtc])
  SELECT @p1, ${now}
  WHERE NOT EXISTS (SELECT 1 FROM ${names.workers} WITH (UPDLOCK, HOLDLOCK, ROWLOCK) WHERE [Worker] = @p1);`;
}

/**
 * Relays with the age of their last cycle, the freshest first. A relay looks at the tables on a schedule, so its silence
 * says something; what only answers events, like ingest, may be silent for days.
 */
export function relayAges(names: Names): string {
  return `
SELECT TOP (100) w.[Worker] AS [worker], ${age('w.[LastCycleAtUtc]')} AS [age]
FROM ${names.workers} AS w WHERE w.[Worker] LIKE N'outbox-relay%' ORDER BY w.[LastCycleAtUtc] DESC`;
}

/** Forgets workers that were taken out of service. */
export function forgetWorkers(names: Names): string {
  return `DELETE FROM ${names.workers} WHERE [LastCycleAtUtc] < DATEADD(day, -30, ${now})`;
}
