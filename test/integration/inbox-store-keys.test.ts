import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { ClaimedInboxMessage } from '../../shared/store/inbox-store.ts';
import { requeueInboxRows } from '../../shared/store/postgres/operations/inbox-fate.ts';
import { claimRequest, createInbox, inboxRow, limits } from '../support/inbox.ts';

const db = await createInbox();
afterAll(() => db.drop());
beforeEach(() => db.pool.query('TRUNCATE inbox_messages, inbox_keys, inbox_lanes'));

const { store } = db;
const placed = claimRequest();
const cancelled = claimRequest({ messageType: 'order.cancelled' });

async function take(request = placed): Promise<ClaimedInboxMessage | undefined> {
  const { messages } = await store.claim(request);
  expect(messages.length).toBeLessThanOrEqual(1);
  return messages[0];
}

async function one(request = placed): Promise<ClaimedInboxMessage> {
  const message = await take(request);
  if (message === undefined) throw new Error('nothing was due');
  return message;
}

async function succeed(message: ClaimedInboxMessage): Promise<readonly string[] | undefined> {
  const transaction = await store.begin(limits);
  const marked = await store.markProcessed(transaction, message);
  await (marked === undefined ? transaction.rollback() : transaction.commit());
  return marked?.nextTypes;
}

const fail = (
  message: ClaimedInboxMessage,
  retryInSeconds?: number,
  onFailedKey: 'block' | 'skip' = 'block',
) => store.markFailed([{ message, reason: 'no', retryInSeconds }], { onFailedKey });

const key = async () =>
  (await db.rows('SELECT head_type, blocked, lock_token IS NOT NULL AS leased FROM inbox_keys'))[0];

async function requeue(externalMessageId: string): Promise<void> {
  const rows = await db.rows('SELECT id FROM inbox_messages WHERE external_message_id = $1', [
    externalMessageId,
  ]);
  const ids = rows.map((row) => String(row['id']));
  const context = { source: db.inboxDatabase, names: db.tables, unreadableType: 'none' };
  const { changed } = await requeueInboxRows(context, ids, { dryRun: false });
  expect(changed.map(({ id }) => id)).toEqual(ids);
}

describe('a key’s messages are handled one at a time, in order of arrival', () => {
  test('across two types, the first failing twice', async () => {
    const a = inboxRow({ partitionKey: 'k' });
    const b = inboxRow({ partitionKey: 'k', messageType: 'order.cancelled' });
    const c = inboxRow({ partitionKey: 'k' });
    await store.ingest([a, b]);
    await store.ingest([c]);
    for (let attempt = 1; attempt <= 3; attempt++) {
      expect(await take(cancelled)).toBeUndefined();
      const message = await one();
      expect(message).toMatchObject({ externalMessageId: a.externalMessageId, attempt });
      // While it runs, neither its own type's claim nor the other's finds anything of the key.
      expect(await take()).toBeUndefined();
      expect(await take(cancelled)).toBeUndefined();
      if (attempt < 3) expect((await fail(message, 0)).nextTypes).toEqual(['order.placed']);
      else expect(await succeed(message)).toEqual(['order.cancelled']);
    }
    expect(await take()).toBeUndefined();
    const second = await one(cancelled);
    expect(second.externalMessageId).toBe(b.externalMessageId);
    expect(await succeed(second)).toEqual(['order.placed']);
    expect(await succeed(await one())).toEqual([]);
    expect(await key()).toBeUndefined();
  });

  test('a head that waits holds its key back, and only that key', async () => {
    await store.ingest([
      inboxRow({ partitionKey: 'k' }),
      inboxRow({ partitionKey: 'k' }),
      inboxRow({ partitionKey: 'other' }),
    ]);
    const { messages } = await store.claim(placed);
    expect(messages.map((message) => message.partitionKey)).toEqual(['k', 'other']);
    expect((await fail(messages[0] as ClaimedInboxMessage, 60)).nextTypes).toEqual([]);
    await succeed(messages[1] as ClaimedInboxMessage);
    expect(await take()).toBeUndefined();
    const seconds = await store.secondsToNextDue({ consumer: '', messageType: 'order.placed' });
    expect(seconds).toBeGreaterThan(55);
  });

  test('under `block` a Failed message holds its key until a person decides', async () => {
    const [a, b] = [inboxRow({ partitionKey: 'k' }), inboxRow({ partitionKey: 'k' })];
    await store.ingest([a, b]);
    expect((await fail(await one())).nextTypes).toEqual([]);
    expect(await take()).toBeUndefined();
    expect(await key()).toMatchObject({ blocked: true, leased: false });
    await store.ingest([inboxRow({ partitionKey: 'k' })]);
    expect(await take()).toBeUndefined();
    await requeue(a.externalMessageId);
    const again = await one();
    expect(again.externalMessageId).toBe(a.externalMessageId);
    await succeed(again);
    expect((await one()).externalMessageId).toBe(b.externalMessageId);
  });

  test('under `skip` the key goes on', async () => {
    const [a, b] = [inboxRow({ partitionKey: 'k' }), inboxRow({ partitionKey: 'k' })];
    await store.ingest([a, b]);
    expect((await fail(await one(), undefined, 'skip')).nextTypes).toEqual(['order.placed']);
    const second = await one();
    expect(second.externalMessageId).toBe(b.externalMessageId);
    await succeed(second);
    expect(await key()).toBeUndefined();
    await requeue(a.externalMessageId);
    expect((await one()).externalMessageId).toBe(a.externalMessageId);
  });

  test('an earlier message that failed again leaves a later one blocking, too', async () => {
    const [a, b] = [inboxRow({ partitionKey: 'k' }), inboxRow({ partitionKey: 'k' })];
    await store.ingest([a, b]);
    await fail(await one(), undefined, 'skip');
    await fail(await one(), undefined, 'block');
    await requeue(a.externalMessageId);
    expect(await succeed(await one())).toEqual([]);
    expect(await key()).toMatchObject({ blocked: true });
    expect(await take()).toBeUndefined();
  });
});

describe('never two of a key at once', () => {
  test('an operator requeues a Failed head while its follower runs', async () => {
    const [a, b] = [inboxRow({ partitionKey: 'k' }), inboxRow({ partitionKey: 'k' })];
    await store.ingest([a, b]);
    await fail(await one(), undefined, 'skip');
    const follower = await one();
    await requeue(a.externalMessageId);
    expect(await take()).toBeUndefined();
    expect(await key()).toMatchObject({ leased: true });
    expect(await succeed(follower)).toEqual(['order.placed']);
    expect((await one()).externalMessageId).toBe(a.externalMessageId);
    expect(await take()).toBeUndefined();
  });

  test('an earlier row of another type commits late while a later one runs', async () => {
    const early = inboxRow({ partitionKey: 'k', messageType: 'order.cancelled' });
    await store.ingest([early]);
    const [{ sequence }] = (await db.rows('DELETE FROM inbox_messages RETURNING sequence')) as [
      { sequence: string },
    ];
    await db.pool.query('DELETE FROM inbox_keys');
    await store.ingest([inboxRow({ partitionKey: 'k' })]);
    const later = await one();
    // The row that took its number first is committed only now; ingest of such a row names it in the key.
    await db.pool.query(
      `WITH late AS (
         INSERT INTO inbox_messages (id, source, external_message_id, message_type, payload, created_at_utc, partition_key, sequence)
         VALUES (gen_random_uuid(), 'shop', 'late', 'order.cancelled', '{}', now(), 'k', $1) RETURNING sequence)
       UPDATE inbox_keys SET head_sequence = late.sequence, head_type = 'order.cancelled' FROM late`,
      [sequence],
    );
    expect(await take(cancelled)).toBeUndefined();
    expect(await take()).toBeUndefined();
    expect(await succeed(later)).toEqual(['order.cancelled']);
    expect((await one(cancelled)).externalMessageId).toBe('late');
  });

  test('a message arrives at the very moment at which the last one of its key is settled', async () => {
    await store.ingest([inboxRow({ partitionKey: 'k' })]);
    const last = await one();
    const transaction = await store.begin(limits);
    await store.markProcessed(transaction, last);
    const arriving = store.ingest([inboxRow({ partitionKey: 'k' })]);
    await expect.poll(() => waiting()).toBe(1);
    await transaction.commit();
    expect(await arriving).toEqual([{ added: true, differs: false }]);
    expect(await one()).toBeDefined();
  });

  test('and the other way round: a settle begun while an ingest is about to commit', async () => {
    await store.ingest([inboxRow({ partitionKey: 'k' })]);
    const last = await one();
    const slow = await db.pool.connect();
    await slow.query('BEGIN');
    await slow.query(
      `INSERT INTO inbox_messages (id, source, external_message_id, message_type, payload, created_at_utc, partition_key)
       VALUES (gen_random_uuid(), 'shop', 'slow', 'order.placed', '{}', now(), 'k')`,
    );
    await slow.query(`SELECT FROM inbox_keys WHERE partition_key = 'k' FOR UPDATE`);
    const settling = succeed(last);
    await expect.poll(() => waiting()).toBe(1);
    await slow.query('COMMIT');
    slow.release();
    expect(await settling).toEqual(['order.placed']);
    expect((await one()).externalMessageId).toBe('slow');
  });

  async function waiting(): Promise<number> {
    const rows = await db.rows(
      `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return Number(rows[0]?.['n']);
  }
});

describe('a key’s row is set right where it is wrong', () => {
  test('a head of another type is found, and that type named', async () => {
    await store.ingest([inboxRow({ partitionKey: 'k' })]);
    await db.pool.query(`UPDATE inbox_keys SET head_type = 'order.cancelled'`);
    expect(await store.claim(cancelled)).toMatchObject({ messages: [], nextTypes: ['order.placed'] });
    expect(await one()).toBeDefined();
  });

  test('a key with nothing left goes, and one that died between lease and claim is free after its lease', async () => {
    await store.ingest([inboxRow({ partitionKey: 'k' }), inboxRow({ partitionKey: 'gone' })]);
    await db.pool.query(`DELETE FROM inbox_messages WHERE partition_key = 'gone'`);
    await db.pool.query(
      `UPDATE inbox_keys SET lock_token = gen_random_uuid(), locked_until_utc = now() - interval '1 ms'`,
    );
    expect(await one()).toMatchObject({ partitionKey: 'k', attempt: 1 });
    expect(await db.rows('SELECT partition_key FROM inbox_keys')).toEqual([{ partition_key: 'k' }]);
  });

  test('keys beyond the claim’s bytes are free again at once', async () => {
    await store.ingest([inboxRow({ partitionKey: 'a' }), inboxRow({ partitionKey: 'b' })]);
    await one(claimRequest({ maxBytes: 1 }));
    expect((await one()).partitionKey).toBe('b');
  });
});
