import { binary, type Names } from '../names.ts';
import {
  by,
  chosenFrom,
  claimedOutput,
  claiming,
  claimSet,
  digestGiven,
  doomed,
  free,
  idText,
  killedReason,
  type NamedIndex,
  notPaused,
  size,
  suspect,
} from './inbox-shared.ts';
import { later, now } from './time.ts';

/**
 * Claims unkeyed rows: `@p1` digest of the lane, `@p2` limit, `@p3` size, `@p4` lease in ms, `@p5` the handler's own
 * MaxRetries or null, `@p6` whether to leave suspects out, since others are in hand already, and `@p7` the source where only
 * one is wanted.
 *
 * One statement. Candidates are locked as they are read, in the order of the index, and what another has locked is
 * stepped over. The loop join keeps the candidates outside, read once: run a second time they would be other ones. Whether
 * a row is free is asked again where it is written, so that two never have it even where the candidates' locks don't hold.
 * A doomed row is claimed too and marked so in the answer, for `endDoomed`: to end it here would put the end's index into
 * every claim.
 */
export function claimUnkeyed(names: Names, { oneSource = false } = {}): string {
  const lane = digestGiven('@p1');
  const candidates = (
    due: string,
    order: string,
    index: NamedIndex,
  ): string => `SELECT TOP (@p2) i.[Id], i.[Sequence], ${size('i')} AS [Size],
        ${suspect('i')} AS [Suspect], ${doomed('i', '@p5')} AS [Doomed]
      FROM ${names.inbox} AS i ${by(claiming, names, index)}
      WHERE i.[LaneDigest] = ${lane} AND i.[ProcessedAtUtc] IS NULL AND i.[PartitionKey] IS NULL AND ${due}
        AND ${free('i')} AND (@p6 = 0 OR (i.[State] = 0 AND ISNULL(i.[LostLeases], 0) = 0))
        ${oneSource ? `AND i.[Source] = ${binary('@p7')} ` : ''}AND ${notPaused(names.inboxLanes, lane)}
      ORDER BY ${order}`;
  const found = `
      SELECT * FROM (${candidates('i.[NextAttemptAtUtc] IS NULL', 'i.[Sequence]', 'inbox_index_ready')}) AS ready
      UNION ALL
      SELECT * FROM (${candidates(`i.[NextAttemptAtUtc] IS NOT NULL AND i.[NextAttemptAtUtc] <= ${now}`, 'i.[NextAttemptAtUtc]', 'inbox_index_waiting')}) AS come
    `;
  return `
UPDATE i SET ${claimSet('CASE WHEN c.[Doomed] = 0 THEN @p5 END')},
  [LockToken] = NEWID(), [LockedUntilUtc] = ${later('@p4')}
OUTPUT ${claimedOutput}, c.[Alone] AS [alone], c.[Doomed] AS [doomed]
FROM (
  ${chosenFrom(found, '@p2', '@p3')}
) AS c
INNER LOOP JOIN ${names.inbox} AS i WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON i.[Id] = c.[Id]
WHERE i.[ProcessedAtUtc] IS NULL AND ${free('i')}`;
}

/**
 * Ends rows that used up their attempts by losing leases: `@p1` JSON array of ids and the tokens of the claim that found
 * them so. Unkeyed ones, so no key waits.
 */
export function endDoomedUnkeyed(names: Names): string {
  return `
UPDATE i SET [State] = 3, [ProcessedAtUtc] = ${now}, [LastError] = ${killedReason('i.[LostLeases]')},
  [RetryCount] = CASE WHEN i.[RetryCount] > 0 THEN i.[RetryCount] - 1 ELSE 0 END, [LockToken] = NULL, [LockedUntilUtc] = NULL
OUTPUT ${idText('inserted.[Id]')} AS [id]
FROM OPENJSON(@p1) WITH ([id] UNIQUEIDENTIFIER '$.id', [token] UNIQUEIDENTIFIER '$.token') AS d
INNER LOOP JOIN ${names.inbox} AS i WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON i.[Id] = d.[id]
WHERE i.[State] = 1 AND i.[LockToken] = d.[token]`;
}

/** Notes that the type has a handler: `@p1` digest, `@p2` consumer, `@p3` type. The lock on the gap keeps two from inserting. */
export function noteClaim(names: Names): string {
  return `
UPDATE ${names.inboxLanes} WITH (ROWLOCK) SET [LastClaimAtUtc] = ${now} WHERE [LaneDigest] = ${digestGiven('@p1')};
IF @@ROWCOUNT = 0
  INSERT INTO ${names.inboxLanes} ([LaneDigest], [Consumer], [MessageType], [LastClaimAtUtc])
  SELECT @p1, @p2, @p3, ${now}
  WHERE NOT EXISTS (SELECT 1 FROM ${names.inboxLanes} WITH (UPDLOCK, HOLDLOCK, ROWLOCK) WHERE [LaneDigest] = ${digestGiven('@p1')});`;
}
