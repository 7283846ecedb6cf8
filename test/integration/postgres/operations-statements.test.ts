import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { connect } from '../../../shared/store/postgres/connections.ts';
import { postgresInboxStore } from '../../../shared/store/postgres/inbox-store.ts';
import { postgresOutboxStore } from '../../../shared/store/postgres/outbox-store.ts';
import { discardInbox, requeueInbox } from '../../../shared/store/postgres/sql/operations-inbox.ts';
import {
  discardOutbox,
  releaseFollowers,
  requeueOutbox,
} from '../../../shared/store/postgres/sql/operations-outbox.ts';
import { claimRequest, inboxRow } from '../../support/inbox-rows.ts';
import { createMigratedDatabase } from '../../support/migrated.ts';

const { pool, tables, url, drop } = await createMigratedDatabase();
const database = connect({ url });
const inbox = postgresInboxStore(database, tables);
const outbox = postgresOutboxStore(database, tables);
afterAll(async () => {
  await database.end();
  await drop();
});
beforeEach(() => pool.query('TRUNCATE outbox_messages, outbox_leases, inbox_messages, inbox_keys'));

const rowsOf = async (table: string) => (await pool.query(`SELECT * FROM ${table} ORDER BY sequence`)).rows;
const buckets = Array.from({ length: 64 }, (_, bucket) => bucket);
const lease = (leaseMs: number) => outbox.lease({ destination: 'orders', limit: 64, leaseMs, buckets });

/** Inserts an outbox row with more columns and their values; answers its id. */
async function outboxRow(more: Record<string, string>): Promise<string> {
  const { rows } = await pool.query(
    `INSERT INTO outbox_messages (id, destination, message_type, payload, created_at_utc, ${Object.keys(more).join(', ')})
     VALUES (gen_random_uuid(), 'orders', 'x', '{}', now(), ${Object.values(more).join(', ')}) RETURNING id`,
  );
  return rows[0].id;
}

describe('a message that changed between the look and the write is left as it is: each statement names its state', () => {
  it('in the inbox', async () => {
    await inbox.ingest([inboxRow(), inboxRow({ messageType: 'other' })]);
    await inbox.claim(claimRequest());
    const before = await rowsOf('inbox_messages');
    const [running, due] = before.map(({ id }) => id);
    await pool.query(discardInbox(tables), [[running], 'x']);
    await pool.query(requeueInbox(tables), [[running, due]]);
    expect(await rowsOf('inbox_messages')).toEqual(before);
  });

  it('in the outbox', async () => {
    const ids = [
      await outboxRow({ next_attempt_at_utc: "now() + interval '1 minute'", retry_count: '2' }),
      await outboxRow({ state: '2', processed_at_utc: 'now()' }),
      await outboxRow({ state: '1', locked_until_utc: "now() + interval '1 minute'" }),
    ];
    const before = await rowsOf('outbox_messages');
    const held = await lease(20_000);
    await pool.query(requeueOutbox(tables), ['orders', held?.token, ids]);
    await pool.query(discardOutbox(tables), ['orders', held?.token, ids.slice(1), 'x']);
    expect(await rowsOf('outbox_messages')).toEqual(before);
  });
});

it('a command whose own lease ran out changes nothing', async () => {
  const failed = await outboxRow({ state: '3', processed_at_utc: 'now()', partition_key: "'k'" });
  await outboxRow({ partition_key: "'k'", held: 'true' });
  const held = await lease(1);
  await sleep(20);
  const before = await rowsOf('outbox_messages');
  await pool.query(requeueOutbox(tables), ['orders', held?.token, [failed]]);
  await pool.query(discardOutbox(tables), ['orders', held?.token, [failed], 'x']);
  await pool.query(releaseFollowers(tables), ['orders', held?.token, ['k']]);
  expect(await rowsOf('outbox_messages')).toEqual(before);
});
