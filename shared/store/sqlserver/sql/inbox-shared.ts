import type { Names } from '../names.ts';
import { oneMore } from './counting.ts';
import { now } from './time.ts';

/**
 * On what is being claimed, and nowhere else: rows that another claims or settles are stepped over, since it guarantees
 * that somebody comes back to them. READCOMMITTEDLOCK reads the rows themselves where the database has row versions.
 */
export const claiming = 'WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)';

/**
 * On what is read to be changed by the same transaction. It waits: a row that is stepped over would look absent. Seeks
 * are forced, here and wherever rows are found by id or digest: in a small table the optimizer would rather walk all of
 * it, and so wait for rows that are somebody else's.
 */
export const changing = 'WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)';

/** On figures and lists for people. They wait for no transaction that is open, and so leave out what it has not decided. */
export const looking = 'WITH (READPAST, READCOMMITTEDLOCK, ROWLOCK)';

/** An index, as the migrations call it: of the inbox, of its keys, or one that retention goes by. */
export type NamedIndex =
  | 'inbox_index_ready'
  | 'inbox_index_waiting'
  | 'inbox_index_key'
  | 'inbox_index_failed'
  | 'inbox_index_ended'
  | 'keys_index_due'
  | 'keys_index_waiting'
  | 'outbox_index_ended'
  | 'receipts_index_age';

/**
 * One of these hints, with the index to go by. Named where some rows are wanted of many: the optimizer may else walk the
 * clustered index, which is in order of arrival too, through all history. Most are filtered, and then the statement
 * says each part of the filter as it stands there, without a parameter: else there would be no plan (error 8622).
 */
export function by(hint: string, names: Names, index: NamedIndex): string {
  return `${hint.slice(0, -1)}, INDEX(${names.placeholders[index]}))`;
}

/** In nobody's hands. A row that another program marked without a lease is free too: else nobody would ever take it. */
export function free(alias: string): string {
  return `(${alias}.[State] = 0 OR (${alias}.[State] = 1 AND (${alias}.[LockedUntilUtc] IS NULL OR ${alias}.[LockedUntilUtc] <= ${now})))`;
}

/** 1 for a row that may have killed its function before: nothing else may run beside it. */
export function suspect(alias: string): string {
  return `CASE WHEN ${alias}.[State] = 1 OR ISNULL(${alias}.[LostLeases], 0) > 0 THEN 1 ELSE 0 END`;
}

/** 1 for a row that lost its lease again although it ran alone, and has no attempts left. */
export function doomed(alias: string, maxRetries: string): string {
  return `CASE WHEN ${alias}.[State] = 1 AND ISNULL(${alias}.[LostLeases], 0) > 0 AND ${alias}.[RetryCount] > COALESCE(${maxRetries}, ${alias}.[MaxRetries]) THEN 1 ELSE 0 END`;
}

/**
 * The error of a message that used up its attempts by losing leases; `lost` says how often. It is the only text in a
 * statement that is for people.
 */
export function killedReason(lost: string): string {
  return `CONCAT(N'its lease ran out ', ${lost}, N' times: the handler is killed or frozen while it runs this message (out of memory, timeout, process exit), so it was tried alone, and is not tried again')`;
}

/** A person's pause of the lane of digest `lane`. */
export function notPaused(inboxLanes: string, lane: string): string {
  return `NOT EXISTS (SELECT 1 FROM ${inboxLanes} AS l WHERE l.[LaneDigest] = ${lane} AND ${paused('l')})`;
}

/** A person's pause that runs, over an alias of a table of lanes. */
export function paused(alias: string): string {
  return `(${alias}.[PausedAtUtc] IS NOT NULL AND (${alias}.[PausedUntilUtc] IS NULL OR ${alias}.[PausedUntilUtc] > ${now}))`;
}

/** A digest out of JSON, where it stands as hexadecimal digits. */
export function digestFrom(column: string): string {
  return `CONVERT(BINARY(32), ${column}, 2)`;
}

/**
 * A digest that the driver sends, as the columns have it. It comes as VARBINARY, the higher of the two types: compared as
 * it is, the column would be converted, and its index not be found.
 */
export function digestGiven(parameter: string): string {
  return `CONVERT(BINARY(32), ${parameter})`;
}

/** An id as JavaScript writes them: the driver's own are in capitals. */
export function idText(column: string): string {
  return `LOWER(CONVERT(NVARCHAR(36), ${column}))`;
}

/**
 * An instant as ISO 8601 text. Read as text, it can't be taken for something to compute with. Cut to milliseconds and not
 * rounded: the last instant there is, which .NET writes as its greatest, would be out of range, and its batch with it.
 */
export function iso(column: string): string {
  return `(REPLACE(LEFT(CONVERT(NVARCHAR(27), CONVERT(DATETIME2(7), SWITCHOFFSET(${column}, '+00:00')), 121), 23), N' ', N'T') + N'Z')`;
}

/** What the payload counts as: its bytes as stored, UTF-16. SQL Server has no cheap way to know those of UTF-8. */
export function size(alias: string): string {
  return `DATALENGTH(${alias}.[Payload])`;
}

/** What a claim answers of a row, out of the claiming update. */
export const claimedOutput = `${idText('inserted.[Id]')} AS [id], ${idText('inserted.[LockToken]')} AS [lock_token],
  ISNULL(inserted.[Consumer], N'') AS [consumer], inserted.[Source] AS [source], inserted.[ExternalMessageId] AS [external_message_id],
  inserted.[MessageType] AS [message_type], inserted.[Payload] AS [payload], inserted.[Headers] AS [headers],
  inserted.[CorrelationId] AS [correlation_id], inserted.[PartitionKey] AS [partition_key],
  inserted.[RetryCount] AS [retry_count], inserted.[MaxRetries] AS [max_retries],
  CONVERT(NVARCHAR(20), inserted.[Sequence]) AS [sequence], ${iso('inserted.[CreatedAtUtc]')} AS [created_at]`;

/** The claim itself. It touches no column that an index of ours has as a key or stores. */
export function claimSet(maxRetries: string): string {
  return `[State] = 1, [RetryCount] = ${oneMore('i.[RetryCount]')},
  [LostLeases] = CASE WHEN i.[State] = 1 THEN ${oneMore('i.[LostLeases]')} ELSE ISNULL(i.[LostLeases], 0) END, [MaxRetries] = COALESCE(${maxRetries}, i.[MaxRetries])`;
}

/**
 * Picks from a set (Id, Sequence, Size, Suspect, Doomed): the lowest suspect alone, or as many as count and size allow, but
 * one at least; and doomed ones beside them.
 */
export function chosenFrom(found: string, limit: string, maxSize: string): string {
  return `SELECT p.* FROM (
    SELECT f.*, MAX(CASE WHEN f.[Doomed] = 0 THEN f.[Suspect] ELSE 0 END) OVER () AS [Alone],
      ROW_NUMBER() OVER (PARTITION BY f.[Doomed] ORDER BY f.[Suspect] DESC, f.[Sequence], f.[Id]) AS [Place],
      SUM(f.[Size]) OVER (PARTITION BY f.[Doomed] ORDER BY f.[Sequence], f.[Id] ROWS UNBOUNDED PRECEDING) AS [SizeSoFar]
    FROM (${found}) AS f
  ) AS p
  WHERE p.[Doomed] = 1 OR p.[Place] = 1 OR (p.[Alone] = 0 AND p.[Place] <= ${limit} AND p.[SizeSoFar] <= ${maxSize})`;
}
