import type { Purgeable } from '../../../operations/requests.ts';
import type { Names } from '../names.ts';
import { by, claiming, looking, type NamedIndex } from './inbox-shared.ts';
import { scanLimit } from './operations-shared.ts';
import { now } from './time.ts';

interface Ended {
  readonly table: string;
  readonly id: string;
  readonly ended: string;
  /** In the order of their end. Its rows are locked as they are read, so no other may be gone through. */
  readonly index: NamedIndex;
  /** What the rows are to be, each as one range of an index. */
  readonly ranges: readonly string[];
}

function ended(names: Names, from: Purgeable): Ended {
  if (from === 'receipts') {
    return {
      table: names.receipts,
      id: '[Digest]',
      ended: '[ReceivedAtUtc]',
      index: 'receipts_index_age',
      ranges: ['1 = 1'],
    };
  }
  if (from === 'inbox') {
    const ranges = ['e.[ProcessedAtUtc] IS NOT NULL AND e.[State] IN (2, 4)'];
    return { table: names.inbox, id: '[Id]', ended: '[ProcessedAtUtc]', index: 'inbox_index_ended', ranges };
  }
  // The index leads with the state: both at once would have to be sorted, with all of history in it.
  return {
    table: names.outbox,
    id: '[Id]',
    ended: '[ProcessedAtUtc]',
    index: 'outbox_index_ended',
    ranges: ['e.[State] = 2', 'e.[State] = 4'],
  };
}

const old = (column: string): string =>
  `e.${column} < DATEADD(second, -CONVERT(INT, (@p1 - FLOOR(@p1)) * 86400), DATEADD(day, -CONVERT(INT, FLOOR(@p1)), ${now}))`;

/** Name of the lock that keeps two from removing the same rows side by side. */
export function purgeLock(names: Names, from: Purgeable): string {
  return `relaybox purge ${ended(names, from).table}`;
}

/**
 * Removes one batch of ended rows, oldest end first. Terminal states only, whatever the age of the others. Rows that
 * somebody has locked are stepped over, and it is this session that gives way in a deadlock: retention waits for nobody,
 * and nobody for it. One at a time, by a lock that ends with the transaction. `@p1` days, `@p2` rows, `@p3` the lock's name.
 * Answers how many were removed, and whether another was at work all the time.
 */
export function purgeBatch(names: Names, from: Purgeable): string {
  const { table, id, ended: column, index, ranges } = ended(names, from);
  const oldest = ranges.map(
    (where) => `SELECT * FROM (
        SELECT TOP (@p2) e.${id}, e.${column} FROM ${table} AS e ${by(claiming, names, index)}
        WHERE ${where} AND ${old(column)} ORDER BY e.${column}
      ) AS r`,
  );
  return `
SET DEADLOCK_PRIORITY LOW;
SET XACT_ABORT ON;
BEGIN TRY
BEGIN TRANSACTION;
DECLARE @removed INT = 0, @got INT;
EXEC @got = sp_getapplock @Resource = @p3, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = 2000;
IF @got >= 0
BEGIN
  DELETE t
  FROM (SELECT TOP (@p2) u.${id} FROM (
      ${oldest.join('\n      UNION ALL\n      ')}
    ) AS u ORDER BY u.${column}) AS b
  INNER LOOP JOIN ${table} AS t WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON t.${id} = b.${id}
  OPTION (MAXDOP 1);
  SET @removed = @@ROWCOUNT;
END;
COMMIT TRANSACTION;
SELECT @removed AS [removed], CONVERT(BIT, CASE WHEN @got < 0 THEN 1 ELSE 0 END) AS [busy];
END TRY
BEGIN CATCH
  IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
  THROW;
END CATCH`;
}

/** How many rows a purge would remove, counted up to a limit. `@p1` days. */
export function purgeable(names: Names, from: Purgeable): string {
  const { table, ended: column, index, ranges } = ended(names, from);
  const rows = ranges.map(
    (where) =>
      `SELECT 1 AS [One] FROM ${table} AS e ${by(looking, names, index)} WHERE ${where} AND ${old(column)}`,
  );
  return `
SELECT COUNT(*) AS [count] FROM (SELECT TOP (${scanLimit}) u.[One] FROM (${rows.join(' UNION ALL ')}) AS u) AS s`;
}
