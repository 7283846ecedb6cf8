import { randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { ClaimedInboxMessage } from '../../shared/store/inbox-store.ts';
import { engine } from '../support/engine/engine.ts';
import { operatingOn } from '../support/engine/operations.ts';
import { secondsFromNow } from '../support/engine/values.ts';
import { claimRequest, inboxRow, limits } from '../support/inbox-rows.ts';
import { until } from '../support/until.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
beforeEach(() => db.clear('inbox', 'keys', 'inboxLanes'));

const store = db.inbox;
const { ask } = operatingOn(db);
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

const key = async () => (await db.rows('keys', {}, { columns: ['head_type', 'blocked', 'lock_token'] }))[0];

async function requeue(externalMessageId: string): Promise<void> {
  const rows = await db.rows('inbox', { external_message_id: externalMessageId }, { columns: ['id'] });
  const ids = rows.map(({ id }) => String(id));
  const { changed } = await ask({ command: 'requeue', ids });
  expect(changed).toEqual(ids.map((id) => ({ id, box: 'inbox' })));
}

const someoneWaits = () =>
  until(
    () => db.waiting(),
    (count) => count === 1,
  );

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
    expect(await key()).toMatchObject({ blocked: true, lock_token: null });
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
    expect(await key()).toMatchObject({ lock_token: expect.any(String) });
    expect(await succeed(follower)).toEqual(['order.placed']);
    expect((await one()).externalMessageId).toBe(a.externalMessageId);
    expect(await take()).toBeUndefined();
  });

  test('an earlier row of another type commits late while a later one runs', async () => {
    const early = inboxRow({ partitionKey: 'k', messageType: 'order.cancelled' });
    await store.ingest([early]);
    const [{ sequence } = {}] = await db.rows('inbox', {}, { columns: ['sequence'] });
    await db.clear('inbox', 'keys');
    await store.ingest([inboxRow({ partitionKey: 'k' })]);
    const later = await one();
    // The row that took its number first is committed only now; ingest of such a row names it in the key.
    const late = { external_message_id: 'late', message_type: 'order.cancelled', partition_key: 'k' };
    await db.insert('inbox', { ...late, sequence: String(sequence) });
    await db.update('keys', { head_sequence: String(sequence), head_type: 'order.cancelled' });
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
    await someoneWaits();
    await transaction.commit();
    expect(await arriving).toEqual([{ added: true, differs: false }]);
    expect(await one()).toBeDefined();
  });

  test('and the other way round: a settle begun while an ingest is about to commit', async () => {
    await store.ingest([inboxRow({ partitionKey: 'k' })]);
    const last = await one();
    const slow = await db.begin();
    const within = db.within(slow.tx);
    await within.insert('inbox', { external_message_id: 'slow', partition_key: 'k' });
    await within.touch('keys', { partition_key: 'k' });
    const settling = succeed(last);
    await someoneWaits();
    await slow.commit();
    expect(await settling).toEqual(['order.placed']);
    expect((await one()).externalMessageId).toBe('slow');
  });
});

describe('a key’s row is set right where it is wrong', () => {
  test('a head of another type is found, and that type named', async () => {
    await store.ingest([inboxRow({ partitionKey: 'k' })]);
    await db.update('keys', { head_type: 'order.cancelled' });
    expect(await store.claim(cancelled)).toMatchObject({ messages: [], nextTypes: ['order.placed'] });
    expect(await one()).toBeDefined();
  });

  test('a key with nothing left goes, and one that died between lease and claim is free after its lease', async () => {
    await store.ingest([inboxRow({ partitionKey: 'k' }), inboxRow({ partitionKey: 'gone' })]);
    await db.remove('inbox', { partition_key: 'gone' });
    await db.update('keys', { lock_token: randomUUID(), locked_until_utc: secondsFromNow(-0.001) });
    expect(await one()).toMatchObject({ partitionKey: 'k', attempt: 1 });
    expect(await db.rows('keys', {}, { columns: ['partition_key'] })).toEqual([{ partition_key: 'k' }]);
  });

  test('keys beyond the claim’s bytes are free again at once', async () => {
    await store.ingest([inboxRow({ partitionKey: 'a' }), inboxRow({ partitionKey: 'b' })]);
    await one(claimRequest({ maxBytes: 1 }));
    expect((await one()).partitionKey).toBe('b');
  });
});
