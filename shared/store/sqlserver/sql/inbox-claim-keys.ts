import { binary, type Names } from '../names.ts';
import { oneMore } from './counting.ts';
import { headOf } from './inbox-keys.ts';
import {
  by,
  changing,
  chosenFrom,
  claimedOutput,
  claiming,
  claimSet,
  digestFrom,
  digestGiven,
  doomed,
  free,
  idText,
  killedReason,
  type NamedIndex,
  notPaused,
  suspect,
} from './inbox-shared.ts';
import { later, never, now } from './time.ts';

/** Keys and their leases out of JSON. */
const leased = `OPENJSON(@p1) WITH ([key] CHAR(64) '$.key', [token] UNIQUEIDENTIFIER '$.token') AS g`;

/**
 * First step of a keyed claim: leases keys whose head is due and of the type. `@p1` digest of the lane, `@p2` limit,
 * `@p3` lease in ms, `@p4` the source where only one is wanted. Keys that wait, or that a Failed head blocks, are in neither part of the index that is read here.
 * Committed before the heads are read, so that no other claim has the key meanwhile. Whether a key is free is asked again
 * where it is written, as in `claimUnkeyed`.
 */
export function leaseKeys(names: Names, { oneSource = false } = {}): string {
  const lane = digestGiven('@p1');
  const candidates = (
    due: string,
    order: string,
    index: NamedIndex,
  ): string => `SELECT TOP (@p2) k.[KeyDigest], k.[HeadSequence]
      FROM ${names.keys} AS k ${by(claiming, names, index)}
      WHERE k.[LaneDigest] = ${lane} AND k.[Blocked] = 0 AND ${due} AND k.[LockedUntilUtc] <= ${now}
        ${oneSource ? `AND k.[Source] = ${binary('@p4')} ` : ''}AND ${notPaused(names.inboxLanes, lane)}
      ORDER BY ${order}`;
  return `
UPDATE k SET [LockToken] = NEWID(), [LockedUntilUtc] = ${later('@p3')}
OUTPUT CONVERT(NCHAR(64), inserted.[KeyDigest], 2) AS [key], ${idText('inserted.[LockToken]')} AS [token]
FROM (
  SELECT TOP (@p2) f.[KeyDigest] FROM (
      SELECT * FROM (${candidates('k.[NextAttemptAtUtc] IS NULL', 'k.[HeadSequence]', 'keys_index_due')}) AS ready
      UNION ALL
      SELECT * FROM (${candidates(`k.[NextAttemptAtUtc] IS NOT NULL AND k.[NextAttemptAtUtc] <= ${now}`, 'k.[NextAttemptAtUtc]', 'keys_index_waiting')}) AS come
  ) AS f ORDER BY f.[HeadSequence]
) AS c
INNER LOOP JOIN ${names.keys} AS k WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON k.[KeyDigest] = c.[KeyDigest]
WHERE k.[LockedUntilUtc] <= ${now}`;
}

/** Whether a head may be handled now by a handler of the type: 1 or 0, over the alias `h`. */
const due = (lane: string): string =>
  `CASE WHEN h.[LaneDigest] = ${digestGiven(lane)} AND (h.[NextAttemptAtUtc] IS NULL OR h.[NextAttemptAtUtc] <= ${now}) AND ${free('h')} THEN 1 ELSE 0 END`;

/**
 * Second step: claims the leased keys' true heads, where they are due and of the type. `@p1` JSON array of keys and
 * tokens, `@p2` digest of the lane, `@p3` size, `@p4` MaxRetries or null, `@p5` leave suspects out, `@p6` limit. The message
 * gets the key's token and end, so that the two leases are one. The key is locked before its rows, as everywhere.
 */
export function claimHeads(names: Names): string {
  const found = `
      SELECT h.[Id], h.[Sequence], h.[Size], ${suspect('h')} AS [Suspect], 0 AS [Doomed],
        k.[LockToken] AS [Token], k.[LockedUntilUtc] AS [LeasedUntil]
      FROM ${leased}
      INNER LOOP JOIN ${names.keys} AS k ${changing} ON k.[KeyDigest] = ${digestFrom('g.[key]')} AND k.[LockToken] = g.[token]
      CROSS APPLY (${headOf(names, 'k.[KeyDigest]')}) AS h
      WHERE k.[LockedUntilUtc] > ${now} AND ${due('@p2')} = 1 AND ${doomed('h', '@p4')} = 0
        AND (@p5 = 0 OR (h.[State] = 0 AND ISNULL(h.[LostLeases], 0) = 0))
    `;
  return `
UPDATE i SET ${claimSet('@p4')}, [LockToken] = c.[Token], [LockedUntilUtc] = c.[LeasedUntil]
OUTPUT ${claimedOutput}, CONVERT(NCHAR(64), inserted.[KeyDigest], 2) AS [key], c.[Alone] AS [alone]
FROM (
  ${chosenFrom(found, '@p6', '@p3')}
) AS c
INNER LOOP JOIN ${names.inbox} AS i WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON i.[Id] = c.[Id]
WHERE i.[ProcessedAtUtc] IS NULL AND ${free('i')}`;
}

/**
 * Third step, only where keys were leased whose heads were not claimed: says why. `@p1` keys and tokens, `@p2` digest of
 * the lane, `@p3` MaxRetries or null. `free` keys are to be given back as they are; of `doomed` and `other` the key's row
 * must be set right under its lock (`refreshKeys`).
 */
export function headVerdicts(names: Names): string {
  return `
SELECT g.[key] AS [key], ${idText('k.[LockToken]')} AS [token], ${idText('h.[Id]')} AS [head_id],
  CASE WHEN ${due('@p2')} = 0 THEN 'other' WHEN ${doomed('h', '@p3')} = 1 THEN 'doomed' ELSE 'free' END AS [verdict]
FROM ${leased}
INNER LOOP JOIN ${names.keys} AS k WITH (FORCESEEK) ON k.[KeyDigest] = ${digestFrom('g.[key]')} AND k.[LockToken] = g.[token]
OUTER APPLY (${headOf(names, 'k.[KeyDigest]')}) AS h
WHERE k.[LockedUntilUtc] > ${now}`;
}

/** Gives leased keys back as they are: `@p1` keys and tokens. */
export function freeKeys(names: Names): string {
  return `
UPDATE k SET [LockToken] = NULL, [LockedUntilUtc] = ${never}
FROM ${leased}
INNER LOOP JOIN ${names.keys} AS k WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON k.[KeyDigest] = ${digestFrom('g.[key]')}
WHERE k.[LockToken] = g.[token]`;
}

/**
 * Ends heads that used up their attempts by losing leases: `@p1` JSON array of ids, `@p2` whether their keys wait for a
 * person, `@p3` the handler's own MaxRetries or null. Under the keys' locks, and only while nobody has claimed them again.
 */
export function endDoomed(names: Names): string {
  return `
UPDATE i SET [State] = 3, [ProcessedAtUtc] = ${now}, [LastError] = ${killedReason(oneMore('i.[LostLeases]'))}, [Held] = @p2,
  [LockToken] = NULL, [LockedUntilUtc] = NULL, [LostLeases] = ${oneMore('i.[LostLeases]')}
OUTPUT ${idText('inserted.[Id]')} AS [id]
FROM OPENJSON(@p1) WITH ([id] UNIQUEIDENTIFIER '$') AS d
INNER LOOP JOIN ${names.inbox} AS i WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON i.[Id] = d.[id]
WHERE ${doomed('i', '@p3')} = 1 AND (i.[LockedUntilUtc] IS NULL OR i.[LockedUntilUtc] <= ${now})`;
}
