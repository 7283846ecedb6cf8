import { postgresOutboxStore } from '../../shared/store/postgres/outbox-store.ts';
import { insertRows } from '../../shared/store/postgres/producer.ts';
import { addSql } from '../../shared/store/postgres/sql/add.ts';
import type { ForeignOutboxRow, OutboxHarness, OutboxRowView } from '../../shared/testing/outbox/harness.ts';
import type { MigratedDatabase } from './migrated.ts';

/** A harness over empty tables of a migrated database, for the contract suite and for tests of our own. */
export async function postgresOutboxHarness(db: MigratedDatabase): Promise<OutboxHarness> {
  const { outbox, outboxArchive, leases, lanes } = db.tables;
  await db.pool.query(`TRUNCATE ${outbox}, ${outboxArchive}, ${leases}, ${lanes}`);
  const open = new Set<() => Promise<void>>();
  return {
    store: postgresOutboxStore(db.database, db.tables),
    another: postgresOutboxStore(db.database, db.tables),
    inspect: (id) => inspectOutbox(db, id),
    async archived(id) {
      const { rows } = await db.pool.query(`SELECT FROM ${outboxArchive} WHERE id = $1`, [id]);
      return rows.length > 0;
    },
    async begin() {
      const client = await db.pool.connect();
      await client.query('BEGIN');
      const end = async (how: string): Promise<void> => {
        if (!open.delete(rollback)) return;
        await client.query(how);
        client.release();
      };
      const rollback = (): Promise<void> => end('ROLLBACK');
      open.add(rollback);
      return {
        async add(rows) {
          const added = new Set(await insertRows(client, addSql(db.tables), rows));
          return rows.map(({ id }) => ({ id, added: added.delete(id) }));
        },
        commit: () => end('COMMIT'),
        rollback,
      };
    },
    insertForeignRow: (row) => insertForeignRow(db, row),
    async discard(id) {
      await db.pool.query(
        `UPDATE ${outbox} SET state = 4, held = false, processed_at_utc = clock_timestamp() WHERE id = $1`,
        [id],
      );
    },
    async requeue(id) {
      await db.pool.query(
        `UPDATE ${outbox} SET state = 0, held = false, retry_count = 0, next_attempt_at_utc = NULL,
           processed_at_utc = NULL WHERE id = $1`,
        [id],
      );
    },
    async pause(destination) {
      await db.pool.query(
        `INSERT INTO ${lanes} (destination, paused_at_utc, paused_by) VALUES ($1, clock_timestamp(), 'ann')
         ON CONFLICT (destination) DO UPDATE SET paused_at_utc = clock_timestamp(), paused_by = 'ann'`,
        [destination],
      );
    },
    async resume(destination) {
      await db.pool.query(
        `UPDATE ${lanes} SET paused_at_utc = NULL, paused_by = NULL WHERE destination = $1`,
        [destination],
      );
    },
    async close() {
      for (const rollback of open) await rollback();
    },
  };
}

async function inspectOutbox(db: MigratedDatabase, id: string): Promise<OutboxRowView | undefined> {
  const { rows } = await db.pool.query(
    `SELECT state, held, retry_count, last_error, processed_at_utc IS NOT NULL AS ended, xmin || '/' || ctid AS version,
       extract(epoch FROM next_attempt_at_utc - clock_timestamp())::float8 AS waits
     FROM ${db.tables.outbox} WHERE id = $1`,
    [id],
  );
  const row = rows[0];
  if (!row) return undefined;
  return {
    state: row.state,
    held: row.held,
    retryCount: row.retry_count,
    waitsSeconds: row.waits,
    lastError: row.last_error,
    ended: row.ended,
    version: row.version,
  };
}

/** Exactly as the .NET package inserts: its columns only. */
async function insertForeignRow(db: MigratedDatabase, row: ForeignOutboxRow): Promise<void> {
  await db.pool.query(
    `INSERT INTO ${db.tables.outbox} (id, destination, message_type, payload, headers, correlation_id, created_at_utc,
       next_attempt_at_utc, retry_count, max_retries, state, locked_until_utc, processed_at_utc, last_error)
     VALUES ($1, $2, $3, $4, $9, NULL, now() + make_interval(secs => $5), NULL, $10, $6, $7,
       CASE WHEN $8::float8 IS NOT NULL THEN now() + $8 * interval '1 millisecond' END, NULL, NULL)`,
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
}
