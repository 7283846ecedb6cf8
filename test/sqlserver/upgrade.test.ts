import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkSchema } from '../../shared/store/sqlserver/check.ts';
import { type MigrationReport, migrate } from '../../shared/store/sqlserver/migrate.ts';
import { sqlServerNames } from '../../shared/store/sqlserver/names.ts';
import { sqlServerOutbox } from '../../shared/store/sqlserver/producer.ts';
import { sqlServerSeedSchema } from '../support/seed-schema.ts';
import { createEmptyDatabase, type EmptyDatabase } from './support/empty.ts';

const names = sqlServerNames();
const old = 10_000;
const count = Array.from({ length: old }, (_, n) => n + 1);
let db: EmptyDatabase;
let before: readonly Record<string, unknown>[][];
let report: MigrationReport;
let insertedMeanwhile = 0;

beforeAll(async () => {
  db = await createEmptyDatabase();
  await db.batches(sqlServerSeedSchema);
  const numbers = `(SELECT CONVERT(INT, j.[value]) AS n FROM OPENJSON(@p1) AS j) AS s`;
  // As a service of some age has them: most processed, some failed, some due, many of those made in one moment.
  await db.rows(
    `INSERT INTO dbo.OutboxMessages ([Id], [Destination], [MessageType], [Payload], [CreatedAtUtc], [State], [ProcessedAtUtc], [LastError])
     SELECT NEWID(), N'orders', N'order.placed', N'{"order":' + CONVERT(NVARCHAR(10), s.n) + N'}',
       DATEADD(second, s.n / 7, CONVERT(DATETIMEOFFSET, '2026-01-01T00:00:00+00:00')),
       CASE WHEN s.n % 100 = 0 THEN 0 WHEN s.n % 1000 = 1 THEN 3 ELSE 2 END,
       CASE WHEN s.n % 100 = 0 OR s.n % 1000 = 1 THEN NULL ELSE SYSDATETIMEOFFSET() END,
       CASE WHEN s.n % 1000 = 1 THEN N'gone' END
     FROM ${numbers}`,
    [JSON.stringify(count)],
  );
  await db.rows(
    `INSERT INTO dbo.InboxMessages ([Id], [Source], [ExternalMessageId], [MessageType], [Payload], [CreatedAtUtc], [State], [ProcessedAtUtc])
     SELECT NEWID(), N'shop', N'm-' + CONVERT(NVARCHAR(10), s.n), N'order.placed', N'{}', DATEADD(second, -s.n, SYSDATETIMEOFFSET()), s.n % 5,
       CASE WHEN s.n % 5 = 2 THEN SYSDATETIMEOFFSET() END
     FROM ${numbers}`,
    [JSON.stringify(count.slice(0, 5_000))],
  );
  before = await evidence();
  let migrating = true;
  const writing = (async () => {
    while (migrating) {
      await insertAsTheSeedDoes(`meanwhile ${insertedMeanwhile}`);
      insertedMeanwhile += 1;
    }
  })();
  report = await migrate(db.database, names);
  migrating = false;
  await writing;
}, 120_000);
afterAll(() => db.drop());

/** The columns that the .NET package knows, and no others. */
async function insertAsTheSeedDoes(payload: string): Promise<void> {
  await db.rows(
    `INSERT INTO [dbo].[OutboxMessages] ([Id], [Destination], [MessageType], [Payload], [Headers], [CorrelationId], [CreatedAtUtc],
       [NextAttemptAtUtc], [RetryCount], [MaxRetries], [State], [LockedUntilUtc], [ProcessedAtUtc], [LastError])
     VALUES (NEWID(), N'orders', N'order.placed', @p1, NULL, NULL, DATEADD(minute, 5, SYSDATETIMEOFFSET()), NULL, 0, 5, 0, NULL, NULL, NULL)`,
    [payload],
  );
}

/** What every row of before was. */
async function evidence(): Promise<Record<string, unknown>[][]> {
  const columns = `LOWER(CONVERT(NVARCHAR(36), [Id])) AS [id], [Payload] AS [payload], [State] AS [state], [RetryCount] AS [retries],
    [MaxRetries] AS [most], CONVERT(NVARCHAR(40), [CreatedAtUtc], 127) AS [created]`;
  return [
    (await db.rows(
      `SELECT ${columns} FROM dbo.OutboxMessages WHERE [Payload] LIKE N'{%' ORDER BY [id]`,
    )) as Record<string, unknown>[],
    (await db.rows(
      `SELECT ${columns}, [ExternalMessageId] AS [message] FROM dbo.InboxMessages ORDER BY [id]`,
    )) as Record<string, unknown>[],
  ];
}

describe("tables as the seed's script makes them", () => {
  test('lose no row, and change none of what the other program wrote', async () => {
    expect(before.map((rows) => rows.length)).toEqual([old, 5_000]);
    expect(await evidence()).toEqual(before);
    await checkSchema(db.database, names);
  });

  test('producers went on meanwhile', () => {
    expect(insertedMeanwhile).toBeGreaterThan(5);
  });

  test('unfinished rows are numbered in the order they were made, below all new ones; ended ones stay as they were', async () => {
    const unfinished = await db.rows(
      `SELECT CONVERT(BIGINT, [Sequence]) AS [sequence], [Bucket] AS [bucket], [Held] AS [held], [ProcessedAtUtc] AS [ended], [State] AS [state]
       FROM dbo.OutboxMessages WHERE [Payload] LIKE N'{%' AND [State] NOT IN (2, 4) ORDER BY [CreatedAtUtc], [Id]`,
    );
    expect(unfinished).toHaveLength(110);
    const sequences = unfinished.map(({ sequence }) => Number(sequence));
    expect(sequences).toEqual(sequences.toSorted((one, other) => one - other));
    expect(sequences.at(-1)).toBeLessThan(0);
    for (const { bucket, held, ended, state } of unfinished) {
      expect(Number(bucket)).toBeLessThan(64);
      expect(held).toBe(false);
      expect(ended === null).toBe(state !== 3);
    }
    const transaction = await db.database.begin({ idleMs: 9_000, lockMs: 9_000, statementMs: 9_000 });
    const message = { destination: 'orders', messageType: 'order.placed', payload: 'new' };
    const { id } = await sqlServerOutbox().add(transaction.tx, message);
    await transaction.commit();
    const [last] = await db.rows(
      'SELECT TOP (1) LOWER(CONVERT(NVARCHAR(36), [Id])) AS [id] FROM dbo.OutboxMessages ORDER BY [Sequence] DESC',
    );
    expect(last?.['id']).toBe(id);
    const unplaced =
      'SELECT COUNT(*) AS [count] FROM dbo.OutboxMessages WHERE [State] = 0 AND ([Sequence] IS NULL OR [Bucket] IS NULL OR [Held] IS NULL)';
    expect(await db.rows(unplaced)).toEqual([{ count: 0 }]);
  });

  test('every inbox row is unfinished, or has its end', async () => {
    const rows = await db.rows(
      `SELECT [State] AS [state], COUNT(*) AS [rows], COUNT([ProcessedAtUtc]) AS [ended], COUNT([Sequence]) AS [numbered], COUNT([LastError]) AS [reasons]
       FROM dbo.InboxMessages GROUP BY [State] ORDER BY [State]`,
    );
    expect(rows).toEqual([
      { state: 0, rows: 1000, ended: 0, numbered: 1000, reasons: 0 },
      { state: 1, rows: 1000, ended: 0, numbered: 1000, reasons: 0 },
      { state: 2, rows: 1000, ended: 1000, numbered: 0, reasons: 0 },
      { state: 3, rows: 1000, ended: 1000, numbered: 1000, reasons: 1000 },
      { state: 4, rows: 1000, ended: 1000, numbered: 0, reasons: 0 },
    ]);
  });

  test("the seed's unique index stays until told otherwise, and is reported", async () => {
    expect(report.seedIdentity).toBe(true);
    expect(await checkSchema(db.database, names)).toMatchObject({ seedIdentity: true });
    const replaced = await migrate(db.database, names, { replaceSeedIdentity: true });
    expect(replaced.applied).toEqual(['3 inbox identity', 'drop seed identity']);
    expect(await checkSchema(db.database, names)).toMatchObject({ seedIdentity: false });
    const insert = `INSERT INTO dbo.InboxMessages ([Consumer], [Id], [Source], [ExternalMessageId], [MessageType], [Payload], [CreatedAtUtc])
      VALUES (@p1, NEWID(), N'shop', N'm-1', N't', N'{}', SYSDATETIMEOFFSET())`;
    await db.rows(insert, ['emails']);
    // 2601 or 2627: a unique index, or a constraint.
    const again = db.rows(insert, ['emails']);
    await expect(again).rejects.toMatchObject({ number: expect.toSatisfy((n) => n === 2601 || n === 2627) });
    expect(await migrate(db.database, names)).toEqual({ applied: [], pending: [], seedIdentity: false });
  });
});
