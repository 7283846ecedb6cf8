import { guidText, type Names } from '../names.ts';
import { bucketsIn } from './buckets.ts';
import { besides, blockersOf, passing, paused, unclaimed } from './outbox-predicates.ts';
import { now } from './time.ts';

/**
 * Reads due messages of leased buckets, the earliest first, without a write to a table.
 * `@p1` lane, `@p2` JSON array of `{ b: bucket, q: quota }`, `@p3` limit, `@p4` bytes, `@p5` the probe's token
 * or null, `@p6` JSON array of ids to leave out.
 *
 * - Rows that a producer hasn't committed are passed over, as a snapshot would. But a scan is no snapshot: a row of a key
 *   may commit behind it, and the key's next row before it. So a second statement looks for rows of these keys that
 *   were missed, and leaves out what would overtake them: whoever wrote the later row had seen the earlier one committed.
 * - A settle of the same lease must not run meanwhile, since this sees rows and not a moment; the store sees to it.
 * - An APPLY per bucket is one descent of the index and then neighbours, for each of the three kinds of due rows.
 * - Every read begins at the head. What is under way is passed over by id.
 * - The quotas are more than the limit, and the earliest rows of all are kept: so the buckets stay abreast, and a batch's
 *   rows are neighbours in the table.
 * - `blocked`: 1 where an earlier row of the key is in the way, 0 where the key has rows in the way behind this one or it
 *   is such a row itself, null where the key is free.
 */
export function readSql(names: Names): string {
  const branch = (name: string, where: string, order: string): string => `
    SELECT * FROM (SELECT TOP (l.[Quota]) o.[Id], o.[Sequence], o.[PartitionKey]
      FROM ${names.outbox} AS o ${passing(names, 'due')}
      WHERE o.[Held] = 0 AND o.[Destination] = @p1 AND o.[Bucket] = l.[Bucket] AND ${where}
        AND NOT EXISTS (SELECT 1 FROM @except AS e WHERE e.[Id] = o.[Id])
      ORDER BY ${order}) AS ${name}`;
  const branches = [
    branch('ready', 'o.[State] = 0 AND o.[NextAttemptAtUtc] IS NULL', 'o.[Sequence]'),
    branch('come', `o.[State] = 0 AND o.[NextAttemptAtUtc] <= ${now}`, 'o.[NextAttemptAtUtc]'),
    branch(
      'expired',
      `o.[State] = 1 AND ${unclaimed('o')} AND (o.[NextAttemptAtUtc] IS NULL OR o.[NextAttemptAtUtc] <= ${now})`,
      'o.[Sequence]',
    ),
  ];
  return `${given}
INSERT INTO @except ([Id]) SELECT DISTINCT CONVERT(UNIQUEIDENTIFIER, j.[value]) FROM OPENJSON(@p6) AS j;
DECLARE @leased TABLE ([Bucket] TINYINT NOT NULL PRIMARY KEY, [Quota] INT NOT NULL);
INSERT INTO @leased ([Bucket], [Quota])
SELECT j.[Bucket], j.[Quota] FROM OPENJSON(@p2) WITH ([Bucket] TINYINT '$.b', [Quota] INT '$.q') AS j;
INSERT INTO @read ([Id], [Bucket], [Sequence], [PartitionKey])
SELECT TOP (@p3) o.[Id], l.[Bucket], o.[Sequence], o.[PartitionKey]
FROM @leased AS l CROSS APPLY (${branches.join('\n    UNION ALL')}
) AS o
WHERE ${open(names, '@p5')}
ORDER BY ${earliest('o')};${answer(names)}`;
}

/**
 * Reads the named messages, where they are due. `@p1` lane, `@p2` JSON array of buckets, `@p3` limit, `@p4` bytes,
 * `@p5` the probe's token or null, `@p6` JSON array of ids.
 */
export function readOnlySql(names: Names): string {
  const due = `o.[Destination] = @p1 AND o.[State] IN (0, 1) AND o.[Held] = 0 AND ${unclaimed('o')}
  AND (o.[NextAttemptAtUtc] IS NULL OR o.[NextAttemptAtUtc] <= ${now})`;
  return `${given}
INSERT INTO @read ([Id], [Bucket], [Sequence], [PartitionKey])
SELECT TOP (@p3) o.[Id], o.[Bucket], o.[Sequence], o.[PartitionKey]
FROM (SELECT DISTINCT CONVERT(UNIQUEIDENTIFIER, j.[value]) AS [Id] FROM OPENJSON(@p6) AS j) AS g
INNER LOOP JOIN ${names.outbox} AS o WITH (READPAST, READCOMMITTEDLOCK, ROWLOCK, FORCESEEK) ON o.[Id] = g.[Id]
WHERE ${besides(due)} AND o.[Bucket] IN ${bucketsIn('@p2')} AND ${open(names, '@p5')}
ORDER BY ${earliest('o')};${answer(names, { missed: false })}`;
}

const given = `
SET NOCOUNT ON;
DECLARE @except TABLE ([Id] UNIQUEIDENTIFIER NOT NULL PRIMARY KEY);
DECLARE @read TABLE ([Id] UNIQUEIDENTIFIER NOT NULL, [Bucket] TINYINT NOT NULL, [Sequence] BIGINT NULL,
  [PartitionKey] NVARCHAR(200) COLLATE Latin1_General_100_BIN2 NULL);`;

/** The order of reading, by the alias's columns. A row without a sequence, another program's of before it, comes last. */
function earliest(alias: string): string {
  return `CASE WHEN ${alias}.[Sequence] IS NULL THEN 1 ELSE 0 END, ${alias}.[Sequence], ${alias}.[Id]`;
}

/** A lane that is paused or open answers nothing: both are looked at with each batch. The probe's holder may read an open one. */
function open(names: Names, probe: string): string {
  return `NOT EXISTS (
  SELECT 1 FROM ${names.lanes} AS p WITH (READCOMMITTEDLOCK, ROWLOCK) WHERE p.[Destination] = @p1 AND (${paused('p')}
    OR (p.[OpenUntilUtc] IS NOT NULL AND (p.[ProbeToken] IS NULL OR ${probe} IS NULL
      OR p.[ProbeToken] <> CONVERT(UNIQUEIDENTIFIER, ${probe}) OR p.[ProbeUntilUtc] <= ${now}))))`;
}

/**
 * What was read, with its payloads. Bytes are added up by the sizes that the server knows, two to a character of ASCII:
 * halved, that is what such a payload has in UTF-8. A payload beyond the bound isn't sent, and comes as null.
 */
function answer(names: Names, options: { readonly missed: boolean } = { missed: true }): string {
  const size = 'CONVERT(BIGINT, DATALENGTH(o.[Payload])) / 2';
  const order = `ORDER BY ${earliest('r')}`;
  // Keys are told apart by their lengths too, since grouping ignores trailing spaces.
  const missed = options.missed
    ? `
INSERT INTO @missed ([PartitionKey], [Length], [Sequence])
SELECT k.[PartitionKey], k.[Length], m.[Sequence] FROM (
  SELECT r.[PartitionKey], DATALENGTH(r.[PartitionKey]) AS [Length], MAX(r.[Sequence]) AS [Last]
  FROM @read AS r WHERE r.[PartitionKey] IS NOT NULL GROUP BY r.[PartitionKey], DATALENGTH(r.[PartitionKey])
) AS k
CROSS APPLY (
  SELECT TOP (1) o.[Sequence] FROM ${names.outbox} AS o ${passing(names, 'key')}
  WHERE o.[Destination] = @p1 AND o.[PartitionKey] = k.[PartitionKey] AND DATALENGTH(o.[PartitionKey]) = k.[Length]
    AND o.[Held] = 0 AND o.[State] = 0 AND o.[NextAttemptAtUtc] IS NULL AND o.[Sequence] < k.[Last]
    AND NOT EXISTS (SELECT 1 FROM @read AS r WHERE r.[Id] = o.[Id])
    AND NOT EXISTS (SELECT 1 FROM @except AS e WHERE e.[Id] = o.[Id])
  ORDER BY o.[Sequence]
) AS m;`
    : '';
  return `
DECLARE @missed TABLE ([PartitionKey] NVARCHAR(200) COLLATE Latin1_General_100_BIN2 NOT NULL, [Length] INT NOT NULL, [Sequence] BIGINT NOT NULL);
DECLARE @first TABLE ([PartitionKey] NVARCHAR(200) COLLATE Latin1_General_100_BIN2 NOT NULL, [Length] INT NOT NULL,
  [Id] UNIQUEIDENTIFIER NOT NULL, [Sequence] BIGINT NULL);${missed}
INSERT INTO @first ([PartitionKey], [Length], [Id], [Sequence])
SELECT k.[PartitionKey], k.[Length], b.[Id], b.[Sequence] FROM (
  SELECT DISTINCT r.[PartitionKey], DATALENGTH(r.[PartitionKey]) AS [Length] FROM @read AS r WHERE r.[PartitionKey] IS NOT NULL
) AS k
CROSS APPLY (
  SELECT TOP (1) x.[Id], x.[Sequence] FROM (${blockersOf(names, '@p1', 'k.[PartitionKey]', '1')}
  ) AS x ORDER BY x.[Sequence]
) AS b;
SELECT ${guidText('o.[Id]')} AS [id], o.[MessageType] AS [message_type], o.[Headers] AS [headers],
  o.[CorrelationId] AS [correlation_id], o.[PartitionKey] AS [partition_key],
  CONVERT(NVARCHAR(20), o.[Sequence]) AS [sequence], o.[RetryCount] AS [retry_count], o.[MaxRetries] AS [max_retries],
  r.[Bucket] AS [bucket],
  CASE WHEN f.[Id] IS NULL THEN NULL WHEN f.[Id] <> o.[Id] AND (f.[Sequence] < o.[Sequence] OR o.[Sequence] IS NULL) THEN 1 ELSE 0 END AS [blocked],
  CASE WHEN m.[Sequence] <= r.[Sequence] THEN 1 ELSE 0 END AS [overtakes],
  CASE WHEN SUM(${size}) OVER (${order} ROWS UNBOUNDED PRECEDING) <= @p4 OR ROW_NUMBER() OVER (${order}) = 1
    THEN o.[Payload] END AS [payload]
FROM @read AS r
INNER JOIN ${names.outbox} AS o WITH (READPAST, READCOMMITTEDLOCK, ROWLOCK, FORCESEEK) ON o.[Id] = r.[Id]
LEFT JOIN @first AS f ON f.[PartitionKey] = r.[PartitionKey] AND f.[Length] = DATALENGTH(r.[PartitionKey])
LEFT JOIN @missed AS m ON m.[PartitionKey] = r.[PartitionKey] AND m.[Length] = DATALENGTH(r.[PartitionKey])
WHERE ${besides('o.[State] IN (0, 1) AND o.[Held] = 0')}
${order};`;
}
