import type { Names } from '../names.ts';
import { begin, lockSql } from './outbox-fence.ts';
import { besides, blockersOf, passing } from './outbox-predicates.ts';

/** Due rows of a bucket that one batch looks through for further followers of a blocked key. */
const SCAN = 2_000;

/**
 * Sets rows behind a blocked one `held`, so that they leave what is due: those that a read has met, and others of their
 * keys among the next rows of the bucket. They would cost each read anew otherwise, and look due.
 * `@p1` lane, `@p2` buckets, `@p3` token, `@p4` JSON array of `{ b: bucket, s: sequence to look from, or null }`,
 * `@p5` JSON array of `{ id, k: key }` that were met. Answers how many were set.
 *
 * What blocks is looked up again here, under the lease's lock.
 */
export function holdSql(names: Names): string {
  return `${begin}
DECLARE @met TABLE ([Id] UNIQUEIDENTIFIER NOT NULL, [PartitionKey] NVARCHAR(200) COLLATE Latin1_General_100_BIN2 NOT NULL);
DECLARE @head TABLE ([PartitionKey] NVARCHAR(200) COLLATE Latin1_General_100_BIN2 NOT NULL, [Length] INT NOT NULL,
  [Id] UNIQUEIDENTIFIER NOT NULL, [Sequence] BIGINT NULL);
DECLARE @count INT;${lockSql(names)}
INSERT INTO @met ([Id], [PartitionKey])
SELECT j.[Id], j.[Key] FROM OPENJSON(@p5) WITH ([Id] UNIQUEIDENTIFIER '$.id', [Key] NVARCHAR(200) '$.k') AS j;
INSERT INTO @head ([PartitionKey], [Length], [Id], [Sequence])
SELECT k.[PartitionKey], k.[Length], b.[Id], b.[Sequence] FROM (
  SELECT DISTINCT t.[PartitionKey], DATALENGTH(t.[PartitionKey]) AS [Length] FROM @met AS t
) AS k
CROSS APPLY (
  SELECT TOP (1) x.[Id], x.[Sequence] FROM (${blockersOf(names, '@p1', 'k.[PartitionKey]', '1')}
  ) AS x ORDER BY x.[Sequence]
) AS b;
INSERT INTO @met ([Id], [PartitionKey])
SELECT n.[Id], n.[PartitionKey]
FROM OPENJSON(@p4) WITH ([Bucket] TINYINT '$.b', [First] BIGINT '$.s') AS f
INNER JOIN @mine AS mine ON mine.[Bucket] = f.[Bucket]
CROSS APPLY (
  SELECT TOP (${SCAN}) o.[Id], o.[PartitionKey] FROM ${names.outbox} AS o ${passing(names, 'due')}
  WHERE o.[Held] = 0 AND o.[State] = 0 AND o.[Destination] = @p1 AND o.[Bucket] = f.[Bucket]
    AND o.[NextAttemptAtUtc] IS NULL AND o.[Sequence] >= f.[First]
  ORDER BY o.[Sequence]
) AS n
WHERE EXISTS (SELECT 1 FROM @head AS h WHERE h.[PartitionKey] = n.[PartitionKey] AND h.[Length] = DATALENGTH(n.[PartitionKey]));
UPDATE o SET [Held] = 1
FROM @met AS t
INNER LOOP JOIN ${names.outbox} AS o WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON o.[Id] = t.[Id]
INNER JOIN @head AS h ON h.[PartitionKey] = o.[PartitionKey] AND h.[Length] = DATALENGTH(o.[PartitionKey])
WHERE ${besides('o.[Destination] = @p1 AND o.[State] IN (0, 1) AND o.[Held] = 0')}
  AND o.[Bucket] IN (SELECT mine.[Bucket] FROM @mine AS mine)
  AND o.[Id] <> h.[Id] AND (h.[Sequence] < o.[Sequence] OR o.[Sequence] IS NULL);
SET @count = @@ROWCOUNT;
COMMIT TRANSACTION;
SELECT @count AS [count];`;
}
