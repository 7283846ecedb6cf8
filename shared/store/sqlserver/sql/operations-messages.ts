import type { Names } from '../names.ts';
import { by, idText, iso, looking, paused } from './inbox-shared.ts';
import { flag } from './operations-shared.ts';
import { now } from './time.ts';

/** The lowest id there is, in the order that SQL Server gives them. */
const lowestId = "CONVERT(UNIQUEIDENTIFIER, '00000000-0000-0000-0000-000000000000')";

const listed = (
  alias: string,
): string => `${idText(`${alias}.[Id]`)} AS [id], ${alias}.[MessageType] AS [message_type],
  ${alias}.[PartitionKey] AS [partition_key], ${alias}.[CorrelationId] AS [correlation_id], ${alias}.[RetryCount] AS [retry_count],
  ${alias}.[MaxRetries] AS [max_retries], ${iso(`${alias}.[CreatedAtUtc]`)} AS [created_at],
  ${iso(`${alias}.[ProcessedAtUtc]`)} AS [ended_at], ${flag(`${alias}.[Held] = 1`)} AS [blocks_key],
  LEFT(${alias}.[LastError], 500) AS [last_error]`;

/**
 * A page of the outbox's Failed rows. `@p1` destination or null, `@p2` and `@p3` the place to start behind (destination,
 * id) or null, `@p4` limit. A branch per case, so that each page is a range of the index.
 */
export function failedOutbox(names: Names): string {
  return `
SELECT TOP (@p4) ${listed('o')}, o.[Destination] AS [destination], NULL AS [source], NULL AS [external_message_id]
FROM ${names.outbox} AS o ${looking}
WHERE o.[Held] IN (0, 1) AND o.[State] = 3 AND (@p1 IS NULL OR o.[Destination] = @p1)
  AND (@p2 IS NULL OR o.[Destination] > @p2 OR (o.[Destination] = @p2 AND o.[Id] > CONVERT(UNIQUEIDENTIFIER, @p3)))
ORDER BY o.[Destination], o.[Id]
OPTION (RECOMPILE)`;
}

/**
 * The same of the inbox. `@p1` consumer, `@p2` type or null, `@p3`–`@p5` the place (consumer, type, id) or null, `@p6`
 * limit, `@p7` the lane's digest in hexadecimal digits or null: by the texts alone, types that differ only in case would be one lane.
 */
export function failedInbox(names: Names): string {
  return `
SELECT TOP (@p6) ${listed('i')}, ISNULL(i.[Consumer], N'') AS [consumer], i.[Source] AS [source], i.[ExternalMessageId] AS [external_message_id]
FROM ${names.inbox} AS i ${by(looking, names, 'inbox_index_failed')}
WHERE i.[State] = 3 AND (@p2 IS NULL OR (i.[Consumer] = @p1 AND i.[MessageType] = @p2 AND i.[LaneDigest] = CONVERT(BINARY(32), CONVERT(CHAR(64), @p7), 2)))
  AND (@p3 IS NULL OR i.[Consumer] > @p3 OR (i.[Consumer] = @p3 AND i.[MessageType] > @p4)
    OR (i.[Consumer] = @p3 AND i.[MessageType] = @p4 AND i.[Id] > ISNULL(CONVERT(UNIQUEIDENTIFIER, @p5), ${lowestId})))
ORDER BY i.[Consumer], i.[MessageType], i.[Id]
OPTION (RECOMPILE)`;
}

/** What is shown of a row of either box; `payload` is the parameter that asks for it. */
const common = (alias: string, payload: string): string => `
  ${idText(`${alias}.[Id]`)} AS [id], ${alias}.[MessageType] AS [message_type], ${alias}.[PartitionKey] AS [partition_key],
  CONVERT(NVARCHAR(20), ${alias}.[Sequence]) AS [sequence], ${alias}.[CorrelationId] AS [correlation_id], ${alias}.[Headers] AS [headers],
  ${alias}.[State] AS [state], ${alias}.[RetryCount] AS [retry_count], ${alias}.[MaxRetries] AS [max_retries],
  ${iso(`${alias}.[CreatedAtUtc]`)} AS [created_at], ${iso(`${alias}.[NextAttemptAtUtc]`)} AS [next_attempt_at],
  ${iso(`${alias}.[LockedUntilUtc]`)} AS [locked_until], ${iso(`${alias}.[ProcessedAtUtc]`)} AS [ended_at],
  ${alias}.[LastError] AS [last_error], ${flag(`${alias}.[Held] = 1`)} AS [held], DATALENGTH(${alias}.[Payload]) / 2 AS [payload_bytes],
  CASE WHEN ${payload} = 1 THEN ${alias}.[Payload] END AS [payload],
  ${flag(`${alias}.[NextAttemptAtUtc] > ${now}`)} AS [waits], ${flag(paused('n'))} AS [paused], n.[PausedBy] AS [paused_by],
  ${flag(`${alias}.[State] = 1 AND ${alias}.[LockedUntilUtc] > ${now}`)} AS [running]`;

/** One outbox row with what stands around it. `@p1` with payload, `@p2` id. */
export function showOutbox(names: Names): string {
  return `
SELECT ${common('o', '@p1')}, o.[Destination] AS [destination], CONVERT(INT, ISNULL(o.[Bucket], 0)) AS [bucket],
  ${flag('n.[OpenUntilUtc] IS NOT NULL')} AS [open], ${flag(`s.[LockedUntilUtc] > ${now}`)} AS [leased]
FROM ${names.outbox} AS o WITH (FORCESEEK)
LEFT JOIN ${names.lanes} AS n ON n.[Destination] = o.[Destination] COLLATE Latin1_General_100_BIN2
LEFT JOIN ${names.leases} AS s ON s.[Destination] = o.[Destination] COLLATE Latin1_General_100_BIN2 AND s.[Bucket] = o.[Bucket]
WHERE o.[Id] = CONVERT(UNIQUEIDENTIFIER, @p2)`;
}

const shownInbox = (names: Names, payload: string, hint = ''): string => `
SELECT ${common('i', payload)}, ISNULL(i.[Consumer], N'') AS [consumer], i.[Source] AS [source],
  i.[ExternalMessageId] AS [external_message_id], ${flag('k.[KeyDigest] IS NOT NULL')} AS [keyed], ${flag('k.[Blocked] = 1')} AS [blocked],
  ${flag('k.[HeadSequence] = i.[Sequence]')} AS [head], ${flag(`k.[LockedUntilUtc] > ${now}`)} AS [leased],
  ${flag('n.[LastClaimAtUtc] IS NULL')} AS [unclaimed]
FROM ${names.inbox} AS i${hint}
LEFT JOIN ${names.inboxLanes} AS n ON n.[LaneDigest] = i.[LaneDigest]
LEFT JOIN ${names.keys} AS k ON k.[KeyDigest] = i.[KeyDigest]`;

/** An inbox row by its id, with what stands around it. `@p1` with payload, `@p2` id. */
export function showInboxById(names: Names): string {
  return `${shownInbox(names, '@p1', ' WITH (FORCESEEK)')}
WHERE i.[Id] = CONVERT(UNIQUEIDENTIFIER, @p2)`;
}

/**
 * Inbox rows by their sender's identity: `@p1` with payload, `@p2` JSON array of digests in hexadecimal digits, one per
 * consumer, `@p3` source, `@p4` external message id. The digest decides; the texts beside it are for a table of the seed's.
 */
export function showInboxByIdentity(names: Names): string {
  return `${shownInbox(names, '@p1')}
WHERE i.[Identity] IN (SELECT CONVERT(BINARY(32), d.[digest], 2) FROM OPENJSON(@p2) WITH ([digest] CHAR(64) '$') AS d)
  AND i.[Source] = @p3 AND i.[ExternalMessageId] = @p4
ORDER BY i.[Consumer]`;
}

/** Consumers that have asked for work here; the default one may have none of its own. */
export function consumers(names: Names): string {
  return `SELECT DISTINCT n.[Consumer] AS [consumer] FROM ${names.inboxLanes} AS n`;
}
