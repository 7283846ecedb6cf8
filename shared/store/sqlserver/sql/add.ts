import { keyBucket, type Names } from '../names.ts';
import { later, now } from './time.ts';

/** Raised where there is no transaction to add in. */
export const NO_TRANSACTION = 51_201;
/** Raised where a lock that orders writers could not be had. */
export const NO_LOCK = 51_202;

/**
 * Adds messages within the caller's transaction, in one round trip, and answers the ids that were not there before.
 * `@p1`: a JSON array of rows, each with its `place`; ids are given once only.
 *
 * - One text, since 2,100 parameters are all that a request may have and a table-valued one needs a type in the schema
 *   and, in most ORMs, a way round them. OPENJSON costs about as much as that per row.
 * - A known id falls out without an error, which under XACT_ABORT would doom the transaction. Two transactions that add
 *   the same id wait for each other at a lock named after it. A range lock (HOLDLOCK) would do that too, and for every
 *   other id of that range: in a table that is nearly empty, that is all producers, until each commits. Nothing is caught
 *   either: what dooms a transaction and what doesn't depends on the caller's SET options.
 * - FORCESEEK: in a small table a scan looks cheaper, and would wait at each row that another producer hasn't committed.
 * - READCOMMITTEDLOCK: the look sees what is committed now, also in a SNAPSHOT transaction that began before.
 * - NEXT VALUE FOR … OVER keeps the order of the rows; a default alone promises none.
 * - Instants are this server's: the client sends a delay only.
 * - OUTPUT goes into a variable, since it may not go to the client from a table with a trigger of somebody's. SET NOCOUNT
 *   ends with the batch, as each is an `sp_executesql`.
 */
export function addSql(names: Names, options: { readonly serializeKeys?: boolean } = {}): string {
  return `
SET NOCOUNT ON;
IF @@TRANCOUNT = 0 THROW ${NO_TRANSACTION}, N'Relaybox: outbox.add runs in a transaction, and there is none', 1;
DECLARE @locks TABLE ([Place] INT IDENTITY NOT NULL PRIMARY KEY, [Name] NVARCHAR(255) NOT NULL);
DECLARE @added TABLE ([Id] UNIQUEIDENTIFIER NOT NULL);
DECLARE @place INT = 1, @name NVARCHAR(255), @got INT;
${options.serializeKeys ? keyLocks : ''}INSERT INTO @locks ([Name])
SELECT N'relaybox outbox ' + CONVERT(NVARCHAR(36), j.[id]) FROM OPENJSON(@p1) WITH ([id] UNIQUEIDENTIFIER '$.id') AS j ORDER BY j.[id];
WHILE 1 = 1
BEGIN
  SET @name = NULL;
  SELECT @name = l.[Name] FROM @locks AS l WHERE l.[Place] = @place;
  IF @name IS NULL BREAK;
  EXEC @got = sp_getapplock @Resource = @name, @LockMode = 'Exclusive', @LockOwner = 'Transaction';
  IF @got < 0 THROW ${NO_LOCK}, N'Relaybox: another transaction that adds the same message, or to the same key, did not end in time', 1;
  SET @place = @place + 1;
END;
INSERT INTO ${names.outbox} ([Id], [Destination], [MessageType], [Payload], [Headers], [CorrelationId], [PartitionKey],
  [CreatedAtUtc], [NextAttemptAtUtc], [RetryCount], [MaxRetries], [State], [Held], [Bucket], [Sequence])
OUTPUT inserted.[Id] INTO @added ([Id])
SELECT g.[id], g.[destination], g.[message_type], g.[payload], g.[headers], g.[correlation_id], g.[partition_key],
  ${now}, CASE WHEN g.[delay_ms] > 0 THEN ${later('g.[delay_ms]')} END, 0, g.[max_retries], 0, 0,
  CASE WHEN g.[partition_key] IS NULL THEN CONVERT(TINYINT, CHECKSUM(NEWID()) & 63) ELSE ${keyBucket('g.[partition_key]')} END,
  NEXT VALUE FOR ${names.outboxSequence} OVER (ORDER BY g.[place])
FROM OPENJSON(@p1) WITH (
  [place] INT '$.place', [id] UNIQUEIDENTIFIER '$.id', [destination] NVARCHAR(MAX) '$.destination',
  [message_type] NVARCHAR(MAX) '$.message_type', [payload] NVARCHAR(MAX) '$.payload', [headers] NVARCHAR(MAX) '$.headers',
  [correlation_id] NVARCHAR(MAX) '$.correlation_id', [partition_key] NVARCHAR(MAX) '$.partition_key',
  [delay_ms] BIGINT '$.delay_ms', [max_retries] INT '$.max_retries'
) AS g
WHERE NOT EXISTS (
  SELECT 1 FROM ${names.outbox} AS o WITH (READCOMMITTEDLOCK, ROWLOCK, FORCESEEK) WHERE o.[Id] = g.[id]
);
SELECT LOWER(CONVERT(NVARCHAR(36), a.[Id])) AS [id] FROM @added AS a;`;
}

/** The same in a transaction of its own. */
export function addAloneSql(names: Names): string {
  return `
SET XACT_ABORT ON;
BEGIN TRANSACTION;${addSql(names)}
COMMIT TRANSACTION;`;
}

/**
 * A lock per key until the transaction ends, so that sequence order is commit order also for writers of one key that
 * don't serialise by themselves. Taken in one order by all, and before the first sequence number is drawn.
 */
const keyLocks = `INSERT INTO @locks ([Name])
SELECT DISTINCT N'relaybox key ' + CONVERT(NVARCHAR(64), HASHBYTES('SHA2_256', CONVERT(VARBINARY(MAX), j.[destination]) + 0x0000 + CONVERT(VARBINARY(MAX), j.[partition_key])), 2) AS [name]
FROM OPENJSON(@p1) WITH ([destination] NVARCHAR(300) '$.destination', [partition_key] NVARCHAR(200) '$.partition_key') AS j
WHERE j.[partition_key] IS NOT NULL ORDER BY [name];
`;
