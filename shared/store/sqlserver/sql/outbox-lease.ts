import { bucketOf, guidText, type Names } from '../names.ts';
import { BUCKETS, bucketsIn } from './buckets.ts';
import { besides, someDue } from './outbox-predicates.ts';
import { later, now } from './time.ts';

/** Makes the lane's lease rows where they are missing, and answers how many. `@p1` lane. Two at once wait for each other here, for a moment. */
export function leaseRowsSql(names: Names): string {
  return `
SET NOCOUNT ON;
INSERT INTO ${names.leases} ([Destination], [Bucket])
SELECT @p1, n.[Bucket] FROM ${BUCKETS}
WHERE NOT EXISTS (
  SELECT 1 FROM ${names.leases} AS l WITH (UPDLOCK, HOLDLOCK, ROWLOCK)
  WHERE l.[Destination] = @p1 AND l.[Bucket] = n.[Bucket]
)
ORDER BY n.[Bucket];
SELECT @@ROWCOUNT AS [made];`;
}

/**
 * Leases free buckets: those with due rows, the one first that was leased longest ago; or, with `named`, those of `@p5`,
 * a JSON array. `@p1` lane, `@p2` limit, `@p3` token, `@p4` milliseconds.
 *
 * One statement. READPAST stands on the lease rows that are claimed: one that another is just leasing isn't worth waiting
 * for. UPDLOCK makes the row ours from the look at it to the write, so two never take one bucket.
 */
export function leaseSql(names: Names, options: { readonly named: boolean }): string {
  const wanted = options.named ? `c.[Bucket] IN ${bucketsIn('@p5')}` : someDue(names, '@p1', 'c.[Bucket]');
  return `
UPDATE l SET [LockToken] = CONVERT(UNIQUEIDENTIFIER, @p3), [LockedUntilUtc] = ${later('@p4')}
OUTPUT inserted.[Bucket] AS [bucket]
FROM ${names.leases} AS l WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
WHERE l.[Destination] = @p1 AND l.[LockedUntilUtc] <= ${now} AND l.[Bucket] IN (
  SELECT TOP (@p2) c.[Bucket] FROM ${names.leases} AS c WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
  WHERE c.[Destination] = @p1 AND c.[LockedUntilUtc] <= ${now} AND ${wanted}
  ORDER BY c.[LockedUntilUtc], c.[Bucket]
);`;
}

/** Gives buckets back, where the token still has them. `@p1` lane, `@p2` buckets, `@p3` token. */
export function releaseSql(names: Names): string {
  return `
UPDATE l SET [LockToken] = NULL, [LockedUntilUtc] = ${now}
FROM ${names.leases} AS l WITH (ROWLOCK, READCOMMITTEDLOCK)
WHERE l.[Destination] = @p1 AND l.[Bucket] IN ${bucketsIn('@p2')}
  AND l.[LockToken] = CONVERT(UNIQUEIDENTIFIER, @p3) AND l.[LockedUntilUtc] > ${now};`;
}

/** Lane and bucket of unfinished messages. `@p1` ids. */
export function bucketsOfSql(names: Names): string {
  return `
SELECT ${guidText('o.[Id]')} AS [id], o.[Destination] AS [destination], ${bucketOf('o')} AS [bucket]
FROM (SELECT DISTINCT CONVERT(UNIQUEIDENTIFIER, j.[value]) AS [Id] FROM OPENJSON(@p1) AS j) AS g
INNER LOOP JOIN ${names.outbox} AS o WITH (READCOMMITTEDLOCK, ROWLOCK, FORCESEEK) ON o.[Id] = g.[Id]
WHERE ${besides('o.[State] IN (0, 1)')};`;
}
