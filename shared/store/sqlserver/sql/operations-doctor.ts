import type { Names } from '../names.ts';
import { by, looking } from './inbox-shared.ts';
import { flag } from './operations-shared.ts';
import { passing } from './outbox-predicates.ts';
import { now } from './time.ts';

/** How many rows a check looks at. */
const lookLimit = 5000;

/** The database as its catalog has it, which any user of it may read. */
export const database = `
SELECT ${flag("DATABASEPROPERTYEX(d.[name], 'Updateability') = 'READ_ONLY'")} AS [read_only],
  d.[delayed_durability_desc] AS [delayed_durability], ${flag('d.[is_auto_close_on] = 1')} AS [auto_close]
FROM sys.databases AS d WHERE d.[database_id] = DB_ID()`;

/** How this very connection reached the server. Needs VIEW SERVER STATE. */
export const connection = `
SELECT c.[encrypt_option] AS [encrypted], c.[client_net_address] AS [client], c.[net_transport] AS [transport],
  (SELECT COUNT(*) FROM sys.dm_exec_connections) AS [connections], @@MAX_CONNECTIONS AS [max_connections]
FROM sys.dm_exec_connections AS c WHERE c.[session_id] = @@SPID`;

/** Transactions of this database that have been open for more than five minutes. Needs VIEW SERVER STATE. */
export const oldTransactions = `
SELECT TOP (20) s.[session_id] AS [session], s.[login_name] AS [login], ISNULL(s.[program_name], N'') AS [program], s.[status] AS [status],
  DATEDIFF_BIG(second, t.[transaction_begin_time], GETDATE()) AS [seconds]
FROM sys.dm_tran_session_transactions AS x
JOIN sys.dm_tran_active_transactions AS t ON t.[transaction_id] = x.[transaction_id]
JOIN sys.dm_exec_sessions AS s ON s.[session_id] = x.[session_id]
WHERE s.[database_id] = DB_ID() AND s.[session_id] <> @@SPID AND t.[transaction_begin_time] < DATEADD(minute, -5, GETDATE())
ORDER BY t.[transaction_begin_time]`;

/** Indexes that are disabled, or not there at all. `@p1` JSON array of `{ table, index }`, the table in brackets. */
export const brokenIndexes = `
SELECT w.[index] AS [name], w.[table] AS [table], CASE WHEN x.[index_id] IS NULL THEN N'missing' ELSE N'disabled' END AS [fault]
FROM OPENJSON(@p1) WITH ([table] NVARCHAR(600) '$.table', [index] NVARCHAR(128) '$.index') AS w
LEFT JOIN sys.indexes AS x ON x.[object_id] = OBJECT_ID(w.[table]) AND x.[name] = w.[index] COLLATE DATABASE_DEFAULT
WHERE x.[index_id] IS NULL OR x.[is_disabled] = 1
ORDER BY 1`;

/**
 * What would refuse a write: triggers for UPDATE, beside which no such statement may answer rows (error 334; those for
 * other actions do no harm), and modules made with QUOTED_IDENTIFIER OFF that name the inbox (error 1934). `@p1` JSON
 * array of tables in brackets, `@p2` the inbox.
 */
export const obstacles = `
SELECT N'trigger' AS [kind], OBJECT_NAME(t.[object_id]) AS [name], OBJECT_NAME(t.[parent_id]) AS [table]
FROM OPENJSON(@p1) WITH ([table] NVARCHAR(600) '$') AS w
JOIN sys.triggers AS t ON t.[parent_id] = OBJECT_ID(w.[table]) AND t.[is_disabled] = 0
WHERE EXISTS (SELECT 1 FROM sys.trigger_events AS e WHERE e.[object_id] = t.[object_id] AND e.[type_desc] = N'UPDATE')
UNION ALL
SELECT N'module', OBJECT_NAME(m.[object_id]), OBJECT_NAME(OBJECT_ID(@p2))
FROM sys.sql_modules AS m
WHERE m.[uses_quoted_identifier] = 0 AND EXISTS (
  SELECT 1 FROM sys.sql_expression_dependencies AS d
  WHERE d.[referencing_id] = m.[object_id] AND d.[referenced_id] = OBJECT_ID(@p2))`;

/**
 * Traces of another program's outbox worker. Relaybox never sets a row of the outbox to Processing, and ends none with a
 * `LockedUntilUtc`: `claimed` are rows under such a claim now, `published` ones that ended with one in the last hour.
 */
export function foreignWorker(names: Names): string {
  return `
SELECT
  (SELECT COUNT(*) FROM (
    SELECT TOP (${lookLimit}) o.[LockedUntilUtc] FROM ${names.outbox} AS o ${passing(names, 'due')} WHERE o.[Held] IN (0, 1) AND o.[State] = 1
  ) AS s WHERE s.[LockedUntilUtc] > ${now}) AS [claimed],
  (SELECT COUNT(*) FROM (
    SELECT TOP (${lookLimit}) o.[LockedUntilUtc] FROM ${names.outbox} AS o ${by(looking, names, 'outbox_index_ended')}
    WHERE o.[State] = 2 AND o.[ProcessedAtUtc] > DATEADD(hour, -1, ${now}) ORDER BY o.[ProcessedAtUtc] DESC
  ) AS s WHERE s.[LockedUntilUtc] IS NOT NULL) AS [published]`;
}

/** Unfinished outbox rows without a place in the order, a bucket, or a word about being held: no relay finds them. */
export function unnumbered(names: Names): string {
  return `
SELECT COUNT(*) AS [count] FROM (
  SELECT TOP (${lookLimit}) 1 AS [One] FROM ${names.outbox} AS o ${passing(names, 'due')} WHERE o.[Held] IS NULL AND o.[State] IN (0, 1, 3)
  UNION ALL
  SELECT 1 FROM (
    SELECT TOP (${lookLimit}) o.[Bucket], o.[Sequence] FROM ${names.outbox} AS o ${passing(names, 'due')} WHERE o.[Held] = 0 AND o.[State] IN (0, 1)
  ) AS r WHERE r.[Bucket] IS NULL OR r.[Sequence] IS NULL
) AS s`;
}

/** Keyed inbox rows whose key has no row, among the first ones. */
export function keysMissing(names: Names): string {
  return `
SELECT COUNT(*) AS [count] FROM (
  SELECT TOP (${lookLimit}) i.[KeyDigest], i.[ProcessedAtUtc], i.[Held] FROM ${names.inbox} AS i ${by(looking, names, 'inbox_index_key')}
  WHERE i.[PartitionKey] IS NOT NULL AND i.[State] IN (0, 1, 3)
) AS i
WHERE (i.[ProcessedAtUtc] IS NULL OR i.[Held] = 1)
  AND NOT EXISTS (SELECT 1 FROM ${names.keys} AS k WHERE k.[KeyDigest] = i.[KeyDigest])`;
}
