import type { OutboxRow } from '../../../shared/message/message.ts';
import { sqlServerOutboxStore } from '../../../shared/store/sqlserver/outbox-store.ts';
import { insertRows } from '../../../shared/store/sqlserver/producer.ts';
import { addSql } from '../../../shared/store/sqlserver/sql/add.ts';
import type { OutboxHarness, OutboxRowView } from '../../../shared/testing/outbox/harness.ts';
import type { SqlServerFixture } from './server.ts';

const limits = { idleMs: 60_000, lockMs: 60_000, statementMs: 60_000 };

/** A harness over empty tables, for the contract suite. */
export async function sqlServerOutboxHarness(fixture: SqlServerFixture): Promise<OutboxHarness> {
  const { database, names, rows } = fixture;
  await rows(
    `DELETE FROM ${names.outbox}; DELETE FROM ${names.outboxArchive}; DELETE FROM ${names.leases}; DELETE FROM ${names.lanes};`,
  );
  const open = new Set<() => Promise<void>>();
  return {
    store: sqlServerOutboxStore(database, names),
    another: sqlServerOutboxStore(database, names),
    inspect: (id) => inspect(fixture, id),
    async archived(id) {
      const found = await rows(`SELECT 1 AS [found] FROM ${names.outboxArchive} WHERE [Id] = @p1`, [id]);
      return found.length > 0;
    },
    async begin() {
      const transaction = await database.begin(limits);
      const rollback = async (): Promise<void> => {
        open.delete(rollback);
        await transaction.rollback();
      };
      open.add(rollback);
      return {
        async add(added: readonly OutboxRow[]) {
          const fresh = new Set(await insertRows(transaction.executor, addSql(names), added));
          return added.map(({ id }) => ({ id, added: fresh.delete(id) }));
        },
        async commit() {
          open.delete(rollback);
          await transaction.commit();
        },
        rollback,
      };
    },
    async insertForeignRow(row) {
      await rows(
        `INSERT INTO ${names.outbox} ([Id], [Destination], [MessageType], [Payload], [Headers], [CorrelationId], [CreatedAtUtc],
           [NextAttemptAtUtc], [RetryCount], [MaxRetries], [State], [LockedUntilUtc], [ProcessedAtUtc], [LastError])
         VALUES (@p1, @p2, @p3, @p4, @p9, NULL, DATEADD(second, @p5, SYSDATETIMEOFFSET()), NULL, @p10, @p6, @p7,
           CASE WHEN @p8 IS NOT NULL THEN DATEADD(millisecond, CONVERT(INT, @p8), SYSDATETIMEOFFSET()) END, NULL, NULL)`,
        [
          row.id,
          row.destination,
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
    async discard(id) {
      await rows(
        `UPDATE ${names.outbox} SET [State] = 4, [Held] = 0, [ProcessedAtUtc] = SYSDATETIMEOFFSET() WHERE [Id] = @p1`,
        [id],
      );
    },
    async requeue(id) {
      await rows(
        `UPDATE ${names.outbox} SET [State] = 0, [Held] = 0, [RetryCount] = 0, [NextAttemptAtUtc] = NULL, [ProcessedAtUtc] = NULL
         WHERE [Id] = @p1`,
        [id],
      );
    },
    async pause(destination) {
      await rows(
        `UPDATE ${names.lanes} SET [PausedAtUtc] = SYSDATETIMEOFFSET(), [PausedBy] = N'ann' WHERE [Destination] = @p1;
         IF @@ROWCOUNT = 0
           INSERT INTO ${names.lanes} ([Destination], [PausedAtUtc], [PausedBy]) VALUES (@p1, SYSDATETIMEOFFSET(), N'ann');`,
        [destination],
      );
    },
    async resume(destination) {
      await rows(
        `UPDATE ${names.lanes} SET [PausedAtUtc] = NULL, [PausedBy] = NULL WHERE [Destination] = @p1`,
        [destination],
      );
    },
    async close() {
      for (const rollback of open) await rollback();
    },
  };
}

async function inspect({ names, rows }: SqlServerFixture, id: string): Promise<OutboxRowView | undefined> {
  const [row] = await rows(
    `SELECT [State] AS [state], CONVERT(INT, ISNULL([Held], 0)) AS [held], [RetryCount] AS [retry_count], [LastError] AS [last_error],
       CASE WHEN [ProcessedAtUtc] IS NULL THEN 0 ELSE 1 END AS [ended],
       BINARY_CHECKSUM([State], [Held], [RetryCount], [NextAttemptAtUtc], [ProcessedAtUtc], [LockedUntilUtc]) AS [version],
       DATEDIFF_BIG(millisecond, SYSDATETIMEOFFSET(), [NextAttemptAtUtc]) / 1000.0E0 AS [waits]
     FROM ${names.outbox} WHERE [Id] = @p1`,
    [id],
  );
  if (row === undefined) return undefined;
  return {
    state: Number(row['state']),
    held: row['held'] === 1,
    retryCount: Number(row['retry_count']),
    waitsSeconds: typeof row['waits'] === 'number' ? row['waits'] : null,
    lastError: typeof row['last_error'] === 'string' ? row['last_error'] : null,
    ended: row['ended'] === 1,
    version: String(row['version']),
  };
}
