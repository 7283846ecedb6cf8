import type { Names } from '../names.ts';
import { changing, digestFrom } from './inbox-shared.ts';
import { now } from './time.ts';

/**
 * Stores a batch in one round trip and one transaction: `@p1` is a JSON array of rows with their place `n`, their digests,
 * and whether a row is the first of its identity in the batch.
 *
 * JSON, not a table-valued parameter: that needs a type in the user's schema and a grant on it, and a list in one
 * parameter has one plan whatever its length.
 *
 * - What is there already is found by a probe of the unique index. Two ingests that store one message at the same moment
 *   meet at that index; the later gets a duplicate key (2601), which undoes its batch, and it runs once more. Locks on the
 *   gaps between keys would spare it that, but digests are random, so they would make every ingest wait for every other.
 *   This transaction is Relaybox's own: nobody else's work is undone with it.
 * - Rows are inserted in the order given, since their sequence is their order of arrival. Their keys are locked after
 *   that, sorted; see the rules in `inbox-keys.ts`. A key whose head stands before the new row is locked and left as it is.
 *
 * Answers a row per row given: `added`, and `differs` where what is stored under the identity has another payload.
 */
export function ingest(names: Names): string {
  // The digest decides. The texts beside it are for a table of the seed's, whose index of ours is not there yet.
  const same = `i.[Identity] = r.[Identity] AND i.[Source] = r.[Source] COLLATE DATABASE_DEFAULT
    AND i.[ExternalMessageId] = r.[ExternalMessageId] COLLATE DATABASE_DEFAULT`;
  return `
SET XACT_ABORT ON;
BEGIN TRY
BEGIN TRANSACTION;
DECLARE @input TABLE ([n] INT NOT NULL PRIMARY KEY, [Id] UNIQUEIDENTIFIER NOT NULL, [First] BIT NOT NULL, [Identity] BINARY(32) NOT NULL,
  [Consumer] NVARCHAR(200) NOT NULL, [Source] NVARCHAR(200) NOT NULL, [ExternalMessageId] NVARCHAR(300) NOT NULL,
  [MessageType] NVARCHAR(200) NOT NULL, [Payload] NVARCHAR(MAX) NOT NULL, [Headers] NVARCHAR(MAX) NULL,
  [CorrelationId] NVARCHAR(200) NULL, [PartitionKey] NVARCHAR(200) NULL, [MaxRetries] INT NOT NULL, [FailedReason] NVARCHAR(MAX) NULL);
INSERT INTO @input ([n], [Id], [First], [Identity], [Consumer], [Source], [ExternalMessageId], [MessageType], [Payload], [Headers],
  [CorrelationId], [PartitionKey], [MaxRetries], [FailedReason])
SELECT r.[n], r.[id], r.[first], ${digestFrom('r.[identity]')}, r.[consumer], r.[source], r.[externalMessageId], r.[messageType], r.[payload],
  r.[headers], r.[correlationId], r.[partitionKey], r.[maxRetries], r.[failedReason]
FROM OPENJSON(@p1) WITH ([n] INT '$.n', [id] UNIQUEIDENTIFIER '$.id', [first] BIT '$.first', [identity] CHAR(64) '$.identity',
  [consumer] NVARCHAR(200) '$.consumer', [source] NVARCHAR(200) '$.source', [externalMessageId] NVARCHAR(300) '$.externalMessageId',
  [messageType] NVARCHAR(200) '$.messageType', [payload] NVARCHAR(MAX) '$.payload', [headers] NVARCHAR(MAX) '$.headers',
  [correlationId] NVARCHAR(200) '$.correlationId', [partitionKey] NVARCHAR(200) '$.partitionKey', [maxRetries] INT '$.maxRetries',
  [failedReason] NVARCHAR(MAX) '$.failedReason') AS r;
DECLARE @added TABLE ([Id] UNIQUEIDENTIFIER NOT NULL PRIMARY KEY, [KeyDigest] BINARY(32) NULL, [Sequence] BIGINT NOT NULL);
INSERT INTO ${names.inbox} ([Id], [Consumer], [Source], [ExternalMessageId], [MessageType], [Payload], [Headers], [CorrelationId],
  [PartitionKey], [MaxRetries], [CreatedAtUtc], [State], [ProcessedAtUtc], [LastError], [Sequence])
OUTPUT inserted.[Id], inserted.[KeyDigest], inserted.[Sequence] INTO @added ([Id], [KeyDigest], [Sequence])
SELECT r.[Id], r.[Consumer], r.[Source], r.[ExternalMessageId], r.[MessageType], r.[Payload], r.[Headers], r.[CorrelationId],
  CASE WHEN r.[FailedReason] IS NULL THEN r.[PartitionKey] END, r.[MaxRetries], ${now},
  CASE WHEN r.[FailedReason] IS NULL THEN 0 ELSE 3 END, CASE WHEN r.[FailedReason] IS NOT NULL THEN ${now} END, r.[FailedReason],
  NEXT VALUE FOR ${names.inboxSequence} OVER (ORDER BY r.[n])
FROM @input AS r
WHERE r.[First] = 1 AND NOT EXISTS (SELECT 1 FROM ${names.inbox} AS i WITH (READCOMMITTEDLOCK, FORCESEEK) WHERE ${same});
DECLARE @heads TABLE ([KeyDigest] BINARY(32) NOT NULL PRIMARY KEY, [Id] UNIQUEIDENTIFIER NOT NULL, [Sequence] BIGINT NOT NULL);
INSERT INTO @heads ([KeyDigest], [Id], [Sequence])
SELECT f.[KeyDigest], f.[Id], f.[Sequence] FROM (
  SELECT a.[KeyDigest], a.[Id], a.[Sequence], ROW_NUMBER() OVER (PARTITION BY a.[KeyDigest] ORDER BY a.[Sequence]) AS [Place]
  FROM @added AS a WHERE a.[KeyDigest] IS NOT NULL
) AS f WHERE f.[Place] = 1;
${keepKeys(names)}
COMMIT TRANSACTION;
SELECT r.[n] AS [n], CASE WHEN a.[Id] IS NOT NULL THEN 1 ELSE 0 END AS [added],
  CASE WHEN CONVERT(VARBINARY(MAX), s.[Payload]) = CONVERT(VARBINARY(MAX), r.[Payload]) THEN 0 ELSE 1 END AS [differs]
FROM @input AS r
LEFT JOIN @added AS a ON a.[Id] = r.[Id]
OUTER APPLY (SELECT TOP (1) i.[Payload] FROM ${names.inbox} AS i WITH (FORCESEEK) WHERE ${same}) AS s
ORDER BY r.[n];
END TRY
BEGIN CATCH
  IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
  THROW;
END CATCH`;
}

/**
 * Locks the keys of `@heads`, makes those that are missing, and moves a head that a new row stands before. What is there
 * is locked by the look for it and so can't go before the update; what is made by two at once is a duplicate key, and
 * a retry.
 */
function keepKeys(names: Names): string {
  return `INSERT INTO ${names.keys} ([KeyDigest], [Consumer], [Source], [PartitionKey], [LaneDigest], [HeadSequence], [HeadType])
SELECT h.[KeyDigest], i.[Consumer], i.[Source], i.[PartitionKey], i.[LaneDigest], h.[Sequence], i.[MessageType]
FROM @heads AS h INNER LOOP JOIN ${names.inbox} AS i WITH (FORCESEEK) ON i.[Id] = h.[Id]
WHERE NOT EXISTS (SELECT 1 FROM ${names.keys} AS k ${changing} WHERE k.[KeyDigest] = h.[KeyDigest])
OPTION (MAXDOP 1);
UPDATE k SET [HeadSequence] = h.[Sequence], [HeadType] = i.[MessageType], [LaneDigest] = i.[LaneDigest],
  [NextAttemptAtUtc] = NULL, [Blocked] = 0
FROM @heads AS h
INNER LOOP JOIN ${names.keys} AS k WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON k.[KeyDigest] = h.[KeyDigest]
INNER LOOP JOIN ${names.inbox} AS i WITH (FORCESEEK) ON i.[Id] = h.[Id]
WHERE h.[Sequence] < k.[HeadSequence];`;
}

/**
 * Rows that the seed's unique index takes for others', though their ids differ in code points: `@p1` JSON array of rows
 * with place, digest, source and external id. Only asked after a duplicate key that came again.
 */
export function swallowedBySeedIndex(names: Names): string {
  return `
SELECT r.[n] AS [n]
FROM OPENJSON(@p1) WITH ([n] INT '$.n', [identity] CHAR(64) '$.identity', [source] NVARCHAR(200) '$.source',
  [externalMessageId] NVARCHAR(300) '$.externalMessageId') AS r
WHERE EXISTS (
  SELECT 1 FROM ${names.inbox} AS i
  WHERE i.[Source] = r.[source] COLLATE DATABASE_DEFAULT AND i.[ExternalMessageId] = r.[externalMessageId] COLLATE DATABASE_DEFAULT
    AND i.[Identity] <> ${digestFrom('r.[identity]')}
)
ORDER BY r.[n]`;
}

/**
 * The direct consumer's claim: `@p1` digest. The table's key ignores duplicates, so that one is no error, which could doom
 * the caller's transaction; where another transaction is about to commit the same digest, the insert waits for it.
 */
export function receive(names: Names): string {
  return `
INSERT INTO ${names.receipts} ([Digest]) VALUES (@p1);
SELECT @@ROWCOUNT AS [first];`;
}
