import type { Names } from '../names.ts';
import { changing, idText } from './inbox-shared.ts';
import { flag, idsOf } from './operations-shared.ts';
import { besides, byKey, passing } from './outbox-predicates.ts';
import { now } from './time.ts';

/** Held followers that one statement lets go; the relay's settles let the next ones go. */
export const releaseLimit = 200;

/**
 * The fence of every write below: the buckets of lane `@p1` that token `@p2` still holds, their lease rows locked until
 * the transaction ends, so that no relay can take them meanwhile.
 */
const fence = (names: Names): string => `DECLARE @fence TABLE ([Bucket] TINYINT NOT NULL PRIMARY KEY);
INSERT INTO @fence ([Bucket])
SELECT s.[Bucket] FROM ${names.leases} AS s ${changing}
WHERE s.[Destination] = @p1 AND s.[LockToken] = CONVERT(UNIQUEIDENTIFIER, @p2) AND s.[LockedUntilUtc] > ${now};`;

/** What was changed goes into a variable first: a table with a trigger of somebody's answers no rows by itself. */
const done = 'DECLARE @done TABLE ([Id] UNIQUEIDENTIFIER NOT NULL, [PartitionKey] NVARCHAR(200) NULL);';
const noted = 'OUTPUT inserted.[Id], inserted.[PartitionKey] INTO @done ([Id], [PartitionKey])';
const changed = `SELECT ${idText('d.[Id]')} AS [id], d.[PartitionKey] AS [partition_key] FROM @done AS d;`;

const within = `${besides('o.[Destination] = @p1')} AND o.[Bucket] IN (SELECT f.[Bucket] FROM @fence AS f)`;

/** What a command needs to know of rows, by id (`@p1` JSON array). */
export function locateOutbox(names: Names): string {
  return `
SELECT ${idText('o.[Id]')} AS [id], o.[Destination] AS [destination], CONVERT(INT, ISNULL(o.[Bucket], 0)) AS [bucket], o.[State] AS [state],
  ${flag(`o.[State] = 1 AND o.[LockedUntilUtc] > ${now}`)} AS [running]
FROM ${idsOf('@p1')} INNER LOOP JOIN ${names.outbox} AS o WITH (FORCESEEK) ON o.[Id] = d.[id]`;
}

/**
 * Failed → Pending, retries anew. Idempotent by the state it expects. The replay's number makes a new deduplication id
 * on FIFO queues, where the broker would swallow the message otherwise. `LastError` stays: it says what this was about.
 * Its held followers stay held: the relay lets them go when it settles this one. `@p1` lane, `@p2` token, `@p3` ids.
 */
export function requeueOutbox(names: Names): string {
  const object = `CASE WHEN o.[Headers] IS NULL OR LTRIM(o.[Headers]) = N'null' THEN N'{}'
    WHEN ISJSON(o.[Headers]) = 1 AND LEFT(LTRIM(o.[Headers]), 1) = N'{' THEN o.[Headers] END`;
  // A header of any length, and not only a number, may stand there.
  const replays = `ISNULL(TRY_CONVERT(INT, LEFT(JSON_VALUE(h.[Object], '$."relaybox-replay"'), 8)), 0) + 1`;
  return `
${fence(names)}
${done}
UPDATE o SET [State] = 0, [Held] = 0, [RetryCount] = 0, [NextAttemptAtUtc] = NULL, [LockedUntilUtc] = NULL, [ProcessedAtUtc] = NULL,
  [Headers] = CASE WHEN h.[Object] IS NULL THEN o.[Headers]
    ELSE JSON_MODIFY(h.[Object], '$."relaybox-replay"', CONVERT(NVARCHAR(11), ${replays})) END
${noted}
FROM ${idsOf('@p3')} INNER LOOP JOIN ${names.outbox} AS o WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON o.[Id] = d.[id]
CROSS APPLY (SELECT ${object} AS [Object]) AS h
WHERE ${besides('o.[State] = 3')} AND ${within};
${changed}`;
}

/** Any state but an ended one → Discarded, unless another program's claim on it runs. `@p4` reason. */
export function discardOutbox(names: Names): string {
  return `
${fence(names)}
${done}
UPDATE o SET [State] = 4, [Held] = 0, [NextAttemptAtUtc] = NULL, [LockedUntilUtc] = NULL, [ProcessedAtUtc] = ${now}, [LastError] = @p4
${noted}
FROM ${idsOf('@p3')} INNER LOOP JOIN ${names.outbox} AS o WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON o.[Id] = d.[id]
WHERE ${besides(`o.[State] IN (0, 3) OR (o.[State] = 1 AND (o.[LockedUntilUtc] IS NULL OR o.[LockedUntilUtc] <= ${now}))`)} AND ${within};
${changed}`;
}

/** Rows that a later row of their key must not pass, and that are not to be let go: they wait, or are Failed under `block`. */
const stops = (names: Names, key: string, hint: string): string => `
    SELECT MIN(t.[Sequence]) AS [Sequence] FROM (
      SELECT o.[Sequence] FROM ${names.outbox} AS o ${hint} WHERE ${key} AND o.[Held] = 1 AND o.[State] = 3
      UNION ALL
      SELECT o.[Sequence] FROM ${names.outbox} AS o ${hint} WHERE ${key} AND o.[Held] = 0 AND o.[State] IN (0, 1) AND o.[NextAttemptAtUtc] IS NOT NULL
    ) AS t`;

/**
 * Lets held rows of the keys in `@p3`, a JSON array, go, lowest first, up to the first row that waits or blocks. In a
 * statement of its own, since it must see what became of the row before them.
 */
export function releaseFollowers(names: Names): string {
  const key = `o.[Destination] = @p1 AND o.[PartitionKey] = g.[key] COLLATE Latin1_General_100_BIN2 AND DATALENGTH(o.[PartitionKey]) = DATALENGTH(g.[key])`;
  const reading = byKey(names);
  return `
${fence(names)}
${done}
DECLARE @free TABLE ([Id] UNIQUEIDENTIFIER NOT NULL PRIMARY KEY);
INSERT INTO @free ([Id])
SELECT x.[Id]
FROM OPENJSON(@p3) WITH ([key] NVARCHAR(200) '$') AS g
CROSS APPLY (${stops(names, key, reading)}
) AS stop
CROSS APPLY (
  SELECT TOP (${releaseLimit}) o.[Id] FROM ${names.outbox} AS o ${reading}
  WHERE ${key} AND o.[Held] = 1 AND o.[State] IN (0, 1) AND ${within} AND (stop.[Sequence] IS NULL OR o.[Sequence] < stop.[Sequence])
  ORDER BY o.[Sequence]
) AS x;
UPDATE o SET [Held] = 0
${noted}
FROM @free AS f INNER LOOP JOIN ${names.outbox} AS o WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON o.[Id] = f.[Id]
WHERE ${besides('o.[Held] = 1 AND o.[State] IN (0, 1)')};
${changed}`;
}

/**
 * Keys whose first row in the way is itself held, so that nothing will ever let it go: a page of the keys behind the
 * place (`@p1` destination, `@p2` key), at most `@p3`. A key whose head is just being published looks the same; its bucket
 * is leased then, and it is left alone. Only a hint: what is done about one is decided again, under its bucket's lease.
 */
export function orphanedKeys(names: Names): string {
  const key = 'o.[Destination] = k.[Destination] AND o.[PartitionKey] = k.[PartitionKey]';
  return `
SELECT k.[Destination] AS [destination], k.[PartitionKey] AS [partition_key], CONVERT(INT, k.[Bucket]) AS [bucket],
  ${flag('stop.[Sequence] IS NULL OR stop.[Sequence] > k.[First]')} AS [orphaned]
FROM (
  SELECT TOP (@p3) h.[Destination], h.[PartitionKey], MIN(h.[Bucket]) AS [Bucket], MIN(h.[Sequence]) AS [First]
  FROM ${names.outbox} AS h ${passing(names, 'due')}
  WHERE h.[Held] = 1 AND h.[State] IN (0, 1) AND h.[PartitionKey] IS NOT NULL
    AND (h.[Destination] > @p1 OR (h.[Destination] = @p1 AND h.[PartitionKey] > @p2))
  GROUP BY h.[Destination], h.[PartitionKey]
  ORDER BY h.[Destination], h.[PartitionKey]
) AS k
OUTER APPLY (${stops(names, key, passing(names, 'key'))}
) AS stop
ORDER BY k.[Destination], k.[PartitionKey];`;
}
