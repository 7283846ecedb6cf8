import type { Names } from '../names.ts';
import { later, now } from './time.ts';

/**
 * The beginning of a batch that writes under a lease: one transaction, undone as a whole on any error or cut connection.
 * SET ends with the batch.
 */
export const begin = `
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @mine TABLE ([Bucket] TINYINT NOT NULL PRIMARY KEY);
DECLARE @wanted TABLE ([Bucket] TINYINT NOT NULL PRIMARY KEY);
INSERT INTO @wanted ([Bucket]) SELECT DISTINCT CONVERT(TINYINT, j.[value]) FROM OPENJSON(@p2) AS j;`;

/**
 * The fence: the lease's rows are extended, and locked until the transaction is over, so nobody can take a bucket
 * meanwhile; whoever lost one has it not in `@mine` and changes nothing there.
 * `@p1` lane, `@p2` buckets, `@p3` token, `@p4` milliseconds.
 */
export function extendSql(names: Names): string {
  return `
BEGIN TRANSACTION;
UPDATE l SET [LockedUntilUtc] = ${later('@p4')}
OUTPUT inserted.[Bucket] INTO @mine ([Bucket])
${from(names)}
WHERE ${held};`;
}

/** The same without the extension. */
export function lockSql(names: Names): string {
  return `
BEGIN TRANSACTION;
INSERT INTO @mine ([Bucket])
SELECT l.[Bucket] ${from(names)}
WHERE ${held};`;
}

/** Row by row and in one order by all: a scan of the lane would lock the buckets of others on its way. */
function from(names: Names): string {
  return `FROM @wanted AS w INNER LOOP JOIN ${names.leases} AS l WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)
  ON l.[Destination] = @p1 AND l.[Bucket] = w.[Bucket]`;
}

const held = `l.[LockToken] = CONVERT(UNIQUEIDENTIFIER, @p3) AND l.[LockedUntilUtc] > ${now}`;
