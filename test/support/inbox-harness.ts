import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { operate } from '../../shared/operations/operate.ts';
import { postgresInboxStore } from '../../shared/store/postgres/inbox-store.ts';
import { postgresOperations } from '../../shared/store/postgres/operations.ts';
import { postgresOutboxStore } from '../../shared/store/postgres/outbox-store.ts';
import type { InboxHarness, InboxIdentity, InboxRowView } from '../../shared/testing/inbox/harness.ts';
import type { InboxFixture } from './inbox.ts';

/** A harness over empty tables, for the contract suite. What a person does goes through the operators' commands. */
export async function postgresInboxHarness(inbox: InboxFixture): Promise<InboxHarness<pg.PoolClient>> {
  const { pool, tables } = inbox;
  await pool.query(
    `CREATE TABLE IF NOT EXISTS effects (at bigint GENERATED ALWAYS AS IDENTITY, effect text NOT NULL)`,
  );
  await pool.query(
    `TRUNCATE effects, ${tables.inbox}, ${tables.keys}, ${tables.inboxLanes}, ${tables.receipts}`,
  );
  const { operations } = postgresOperations({ source: pool, leases: postgresOutboxStore(pool, tables) });
  const look = (identity: InboxIdentity) => inspectInbox(inbox, identity);
  return {
    store: inbox.store,
    another: postgresInboxStore(inbox.inboxDatabase, tables),
    inspect: look,
    async write(client, effect) {
      await client.query('INSERT INTO effects (effect) VALUES ($1)', [effect]);
    },
    async effects() {
      const { rows } = await pool.query('SELECT effect FROM effects ORDER BY at');
      return rows.map(({ effect }) => effect);
    },
    async insertForeignRow(row) {
      await pool.query(
        `INSERT INTO ${tables.inbox} (id, source, external_message_id, message_type, payload, created_at_utc,
           max_retries, state, locked_until_utc, headers, retry_count)
         VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6), $7, $8,
           CASE WHEN $9::float8 IS NOT NULL THEN now() + $9 * interval '1 millisecond' END, $10, $11)`,
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

async function inspectInbox(
  { pool, tables }: InboxFixture,
  { consumer, source, externalMessageId }: InboxIdentity,
): Promise<InboxRowView | undefined> {
  const { rows } = await pool.query(
    `SELECT id, state, last_error, processed_at_utc IS NOT NULL AS ended, xmin || '/' || ctid AS version,
       extract(epoch FROM next_attempt_at_utc - clock_timestamp())::float8 AS waits
     FROM ${tables.inbox} WHERE consumer = $1 AND source = $2 AND external_message_id = $3`,
    [consumer, source, externalMessageId],
  );
  const row = rows[0];
  if (!row) return undefined;
  return {
    rowId: row.id,
    state: row.state,
    waitsSeconds: row.waits,
    lastError: row.last_error,
    ended: row.ended,
    version: row.version,
  };
}
