import type { Names } from '../names.ts';
import { bucketsIn } from './buckets.ts';
import { later, now } from './time.ts';

/**
 * The beginning of a batch that writes under a lease: one transaction, undone as a whole on any error or cut connection.
 * SET ends with the batch.
 */
export const begin = `
SET NOCOUNT ON;
SET XACT_ABORT ON;
DECLARE @mine TABLE ([Bucket] TINYINT NOT NULL PRIMARY KEY);`;

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
FROM ${names.leases} AS l WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK)
WHERE ${held};`;
}

/** The same without the extension. */
export function lockSql(names: Names): string {
  return `
BEGIN TRANSACTION;
INSERT INTO @mine ([Bucket])
SELECT l.[Bucket] FROM ${names.leases} AS l WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK)
WHERE ${held};`;
}

const held = `l.[Destination] = @p1 AND l.[LockToken] = CONVERT(UNIQUEIDENTIFIER, @p3) AND l.[LockedUntilUtc] > ${now}
  AND l.[Bucket] IN ${bucketsIn('@p2')}`;
