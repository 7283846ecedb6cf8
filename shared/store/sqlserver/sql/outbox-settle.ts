import type { AfterSuccess } from '../../outbox-store.ts';
import { guidText, type Names } from '../names.ts';
import { oneMore } from './counting.ts';
import { begin, extendSql } from './outbox-fence.ts';
import { besides, blockersOf } from './outbox-predicates.ts';
import { later, now } from './time.ts';

/** The columns that an archived row keeps; `State` and `ProcessedAtUtc` are its end's. */
const archived = [
  'Id',
  'Destination',
  'MessageType',
  'Payload',
  'Headers',
  'CorrelationId',
  'CreatedAtUtc',
  'NextAttemptAtUtc',
  'RetryCount',
  'MaxRetries',
  'LastError',
  'PartitionKey',
  'Sequence',
] as const;

/**
 * Writes that messages were published and extends the lease, in one round trip and one transaction: whoever lost a
 * bucket changes nothing in it. `@p1` lane, `@p2` buckets, `@p3` token, `@p4` milliseconds, `@p5` JSON array of
 * `{ id, f: 1 where its key has rows in the way }`.
 *
 * LOOP and FORCESEEK: in a small table a scan looks cheaper, and would wait at rows that producers haven't committed.
 * OUTPUT goes into a variable, since it may not go to the client from a table with a trigger of somebody's.
 */
export function publishedSql(names: Names, options: { readonly afterSuccess: AfterSuccess }): string {
  const outcome = (rows: 'inserted' | 'deleted'): string =>
    `OUTPUT ${rows}.[Id], ${rows}.[PartitionKey], 2 INTO @done ([Id], [PartitionKey], [State])`;
  const from = (hints: string): string =>
    `FROM @given AS g INNER LOOP JOIN ${names.outbox} AS o WITH (${hints}, FORCESEEK) ON o.[Id] = g.[Id]\n${ours}`;
  const done = {
    keep: `
UPDATE o SET [State] = 2, [Held] = 0, [LockedUntilUtc] = NULL, [ProcessedAtUtc] = ${now}
${outcome('inserted')}
${from('ROWLOCK, READCOMMITTEDLOCK')};`,
    delete: `
DELETE o
${outcome('deleted')}
${from('ROWLOCK, READCOMMITTEDLOCK')};`,
    archive: `
INSERT INTO ${names.outboxArchive} (${columns('')}, [State], [ProcessedAtUtc])
SELECT ${columns('o.')}, 2, ${now}
${from('UPDLOCK, ROWLOCK, READCOMMITTEDLOCK')}
  AND NOT EXISTS (SELECT 1 FROM ${names.outboxArchive} AS a WITH (READCOMMITTEDLOCK, ROWLOCK, FORCESEEK) WHERE a.[Id] = o.[Id]);
DELETE o
${outcome('deleted')}
${from('ROWLOCK, READCOMMITTEDLOCK')};`,
  }[options.afterSuccess];
  return `${begin}${tables}${extendSql(names)}
INSERT INTO @given ([Id], [Follow])
SELECT j.[Id], j.[Follow] FROM OPENJSON(@p5) WITH ([Id] UNIQUEIDENTIFIER '$.id', [Follow] BIT '$.f') AS j;${done}${freedSql(names, '2')}${answer}`;
}

/**
 * Writes failures: a next attempt, or the end in Failed where the retries are used up or there is to be none.
 * `@p1` to `@p4` as above, `@p5` JSON array of `{ id, f, r: reason, ms: to the retry, or null }`.
 *
 * A keyed row that ends under `block` is marked held: that keeps it among what blocks a key.
 */
export function failedSql(names: Names, options: { readonly block: boolean }): string {
  const ends = '(g.[Ms] IS NULL OR o.[RetryCount] >= o.[MaxRetries])';
  return `${begin}${tables}${extendSql(names)}
INSERT INTO @given ([Id], [Follow], [Reason], [Ms])
SELECT j.[Id], j.[Follow], j.[Reason], j.[Ms]
FROM OPENJSON(@p5) WITH ([Id] UNIQUEIDENTIFIER '$.id', [Follow] BIT '$.f', [Reason] NVARCHAR(MAX) '$.r', [Ms] BIGINT '$.ms') AS j;
UPDATE o SET [State] = CASE WHEN ${ends} THEN 3 ELSE 0 END,
  [RetryCount] = CASE WHEN g.[Ms] IS NULL THEN o.[RetryCount] ELSE ${oneMore('o.[RetryCount]')} END,
  [NextAttemptAtUtc] = CASE WHEN ${ends} THEN NULL ELSE ${later('g.[Ms]')} END,
  [Held] = ${options.block ? `CASE WHEN ${ends} AND o.[PartitionKey] IS NOT NULL THEN 1 ELSE 0 END` : '0'},
  [ProcessedAtUtc] = CASE WHEN ${ends} THEN ${now} END, [LockedUntilUtc] = NULL, [LastError] = g.[Reason]
OUTPUT inserted.[Id], inserted.[PartitionKey], inserted.[State] INTO @done ([Id], [PartitionKey], [State])
FROM @given AS g, ${names.outbox} AS o WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)
${ours} AND o.[Id] = g.[Id]
OPTION (LOOP JOIN, FORCE ORDER);${options.block ? '' : freedSql(names, '3')}${answer}`;
}

const tables = `
DECLARE @given TABLE ([Id] UNIQUEIDENTIFIER NOT NULL PRIMARY KEY, [Follow] BIT NOT NULL, [Reason] NVARCHAR(MAX) NULL, [Ms] BIGINT NULL);
DECLARE @done TABLE ([Id] UNIQUEIDENTIFIER NOT NULL, [PartitionKey] NVARCHAR(200) COLLATE Latin1_General_100_BIN2 NULL, [State] INT NOT NULL);
DECLARE @freed TABLE ([Bucket] TINYINT NOT NULL);`;

const ours = `WHERE ${besides('o.[Destination] = @p1 AND o.[State] IN (0, 1)')} AND o.[Bucket] IN (SELECT mine.[Bucket] FROM @mine AS mine)`;

function columns(alias: string): string {
  return archived.map((column) => `${alias}[${column}]`).join(', ');
}

/**
 * Lets held followers go: of each key that has ended messages, the lowest ones, up to the first row that waits or is
 * Failed. As many as were settled, at first twice as many: so a key's pace is kept, and what is let go at once stays few.
 */
function freedSql(names: Names, ended: string): string {
  return `
IF EXISTS (SELECT 1 FROM @given AS g WHERE g.[Follow] = 1)
  UPDATE f SET [Held] = 0
  OUTPUT inserted.[Bucket] INTO @freed ([Bucket])
  FROM (
    SELECT n.[Id], MIN(n.[Passes]) OVER (PARTITION BY k.[PartitionKey], k.[Length] ORDER BY n.[Sequence] ROWS UNBOUNDED PRECEDING) AS [Free]
    FROM (
      SELECT d.[PartitionKey], DATALENGTH(d.[PartitionKey]) AS [Length],
        CASE WHEN COUNT(*) >= 100 THEN COUNT(*) WHEN COUNT(*) > 50 THEN 100 ELSE 2 * COUNT(*) END AS [Most]
      FROM @done AS d INNER JOIN @given AS g ON g.[Id] = d.[Id] AND g.[Follow] = 1
      WHERE d.[PartitionKey] IS NOT NULL AND d.[State] = ${ended}
      GROUP BY d.[PartitionKey], DATALENGTH(d.[PartitionKey])
    ) AS k
    CROSS APPLY (
      SELECT TOP (k.[Most]) x.[Id], x.[Sequence], CASE WHEN x.[Held] = 1 AND x.[State] IN (0, 1) THEN 1 ELSE 0 END AS [Passes]
      FROM (${blockersOf(names, '@p1', 'k.[PartitionKey]', 'k.[Most]')}
      ) AS x ORDER BY x.[Sequence]
    ) AS n
  ) AS lowest
  INNER LOOP JOIN ${names.outbox} AS f WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON f.[Id] = lowest.[Id]
  WHERE lowest.[Free] = 1 AND ${besides('f.[Held] = 1 AND f.[State] IN (0, 1)')};`;
}

/** One result set of kinds and values. */
const answer = `
COMMIT TRANSACTION;
SELECT N'bucket' AS [kind], CONVERT(NVARCHAR(36), m.[Bucket]) AS [value] FROM @mine AS m
UNION ALL SELECT N'settled', ${guidText('d.[Id]')} FROM @done AS d
UNION ALL SELECT N'ended', ${guidText('d.[Id]')} FROM @done AS d WHERE d.[State] = 3
UNION ALL SELECT DISTINCT N'freed', CONVERT(NVARCHAR(36), f.[Bucket]) FROM @freed AS f;`;
