import { randomUUID } from 'node:crypto';
import { operate } from '../../../shared/operations/operate.ts';
import { sqlServerInboxStore } from '../../../shared/store/sqlserver/inbox-store.ts';
import { sqlServerOperations } from '../../../shared/store/sqlserver/operations.ts';
import { sqlServerOutboxStore } from '../../../shared/store/sqlserver/outbox-store.ts';
import type { SqlServerTransaction } from '../../../shared/store/sqlserver/transaction.ts';
import type { InboxHarness, InboxIdentity, InboxRowView } from '../../../shared/testing/inbox/harness.ts';
import type { SqlServerFixture } from './server.ts';

/** A harness over empty tables, for the contract suite. What a person does goes through the operators' commands. */
export async function sqlServerInboxHarness(
  fixture: SqlServerFixture,
): Promise<InboxHarness<SqlServerTransaction>> {
  const { database, names, rows } = fixture;
  await rows(`
IF OBJECT_ID(N'dbo.Effects') IS NULL
  CREATE TABLE dbo.Effects ([At] BIGINT IDENTITY PRIMARY KEY, [Effect] NVARCHAR(400) NOT NULL);
DELETE FROM dbo.Effects; DELETE FROM ${names.inbox}; DELETE FROM ${names.keys}; DELETE FROM ${names.inboxLanes}; DELETE FROM ${names.receipts};`);
  const { operations } = sqlServerOperations({
    source: database,
    leases: sqlServerOutboxStore(database, names),
  });
  const look = (identity: InboxIdentity) => inspect(fixture, identity);
  return {
    store: sqlServerInboxStore(database, names),
    another: sqlServerInboxStore(database, names),
    inspect: look,
    async write(tx, effect) {
      await tx.query('INSERT INTO dbo.Effects ([Effect]) VALUES (@p1)', [effect]);
    },
    async effects() {
      return (await rows('SELECT [Effect] AS [effect] FROM dbo.Effects ORDER BY [At]')).map((row) =>
        String(row['effect']),
      );
    },
    async insertForeignRow(row) {
      await rows(
        `INSERT INTO ${names.inbox} ([Id], [Source], [ExternalMessageId], [MessageType], [Payload], [CreatedAtUtc], [MaxRetries],
           [State], [LockedUntilUtc], [Headers], [RetryCount])
         VALUES (@p1, @p2, @p3, @p4, @p5, DATEADD(second, @p6, SYSDATETIMEOFFSET()), @p7, @p8,
           CASE WHEN @p9 IS NOT NULL THEN DATEADD(millisecond, CONVERT(INT, @p9), SYSDATETIMEOFFSET()) END, @p10, @p11)`,
        [
          randomUUID(),
          row.source,
          row.externalMessageId,
          row.messageType,
          row.payload,
          row.createdInSeconds ?? 0,
          row.maxRetries,
          row.state,
          row.lockedForMs ?? null,
          row.headersJson ?? null,
          row.retryCount ?? 0,
        ],
      );
    },
    async requeue(identity) {
      await operate(operations, { command: 'requeue', ids: [(await look(identity))?.rowId] });
    },
    async pause(consumer, messageType) {
      await operate(operations, {
        command: 'pause',
        consumer,
        messageType,
        by: 'ann',
        reason: 'the contract',
      });
    },
    async resume(consumer, messageType) {
      await operate(operations, { command: 'resume', consumer, messageType });
    },
    async close() {},
  };
}

async function inspect(
  { names, rows }: SqlServerFixture,
  { consumer, source, externalMessageId }: InboxIdentity,
): Promise<InboxRowView | undefined> {
  const [row] = await rows(
    // The digest is written out here: a view by the store's own would agree with it in a fault, too.
    `SELECT LOWER(CONVERT(NVARCHAR(36), [Id])) AS [id], [State] AS [state], [LastError] AS [last_error],
       CASE WHEN [ProcessedAtUtc] IS NULL THEN 0 ELSE 1 END AS [ended], BINARY_CHECKSUM([State], [RetryCount], [MaxRetries], [LockToken],
         [LockedUntilUtc], [NextAttemptAtUtc], [ProcessedAtUtc], [LostLeases], [Held]) AS [version],
       DATEDIFF_BIG(millisecond, SYSDATETIMEOFFSET(), [NextAttemptAtUtc]) / 1000.0E0 AS [waits]
     FROM ${names.inbox}
     WHERE CONVERT(VARBINARY(400), ISNULL([Consumer], N'')) = CONVERT(VARBINARY(400), @p1)
       AND CONVERT(VARBINARY(400), [Source]) = CONVERT(VARBINARY(400), @p2)
       AND CONVERT(VARBINARY(600), [ExternalMessageId]) = CONVERT(VARBINARY(600), @p3)`,
    [consumer, source, externalMessageId],
  );
  if (row === undefined) return undefined;
  return {
    rowId: String(row['id']),
    state: Number(row['state']),
    waitsSeconds: typeof row['waits'] === 'number' ? row['waits'] : null,
    lastError: typeof row['last_error'] === 'string' ? row['last_error'] : null,
    ended: row['ended'] === 1,
    version: String(row['version']),
  };
}
