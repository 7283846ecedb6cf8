import { randomUUID } from 'node:crypto';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { engine } from '../support/engine/engine.ts';
import { above, below, daysAgo, not, secondsFromNow } from '../support/engine/values.ts';
import { claimRequest, inboxRow } from '../support/inbox-rows.ts';
import { until } from '../support/until.ts';

// What the tests of both engines see through. A fault here would be one in each of them.
const db = await engine.createDatabase();
afterAll(() => db.drop());
beforeEach(() => db.clear());

test('what is inserted is read back, each kind in one form on either engine', async () => {
  const id = await db.insert('outbox', {
    id: randomUUID().toUpperCase(),
    payload: 'a',
    headers: { tenant: 't' },
    partition_key: 'k',
    held: true,
    next_attempt_at_utc: secondsFromNow(90.5),
    created_at_utc: daysAgo(400),
  });
  const [row] = await db.rows('outbox', { id });
  expect(row).toMatchObject({
    id: id.toLowerCase(),
    destination: 'orders',
    headers: { tenant: 't' },
    held: true,
    state: 0,
    bucket: expect.any(Number),
    sequence: expect.stringMatching(/^\d+$/),
    created_at_utc: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
    locked_until_utc: null,
  });
  const [seconds] = await db.secondsLeft('outbox', 'next_attempt_at_utc');
  expect(seconds).toBeGreaterThan(80);
  expect(seconds).toBeLessThanOrEqual(90.5);
  for (const table of ['archive', 'inbox', 'workers'] as const) {
    await db.insert(table, table === 'workers' ? { worker: 'w', last_cycle_at_utc: daysAgo(0) } : {});
    expect(await db.rows(table)).toHaveLength(1);
  }
  await db.insert('receipts', { digest: Buffer.alloc(32, 1), received_at_utc: daysAgo(1) });
  expect((await db.rows('receipts'))[0]?.digest).toEqual(Buffer.alloc(32, 1));
  await db.insert('lanes', { destination: 'orders', tried: [id.toLowerCase()], paused_by: 'ann' });
  expect(await db.rows('lanes', {}, { columns: ['tried', 'paused_by'] })).toEqual([
    { tried: [id.toLowerCase()], paused_by: 'ann' },
  ]);
});

test('conditions pick rows; changes say how many', async () => {
  await db.insertMany(
    'inbox',
    Array.from({ length: 1_200 }, (_, n) => ({ external_message_id: `m${n}`, retry_count: n })),
  );
  expect(await db.count('inbox')).toBe(1_200);
  expect(await db.count('inbox', { retry_count: below(10) })).toBe(10);
  expect(await db.count('inbox', { external_message_id: ['m1', 'm2', 'no'] })).toBe(2);
  expect(await db.count('inbox', { external_message_id: [] })).toBe(0);
  expect(await db.update('inbox', { state: 2, last_error: null }, { retry_count: above(1_189) })).toBe(10);
  expect(await db.count('inbox', { state: not(2), processed_at_utc: null })).toBe(1_190);
  expect(await db.remove('inbox', { state: 2 })).toBe(10);
  expect(await db.update('inbox', { processed_at_utc: secondsFromNow(-60) }, { retry_count: 3 })).toBe(1);
  expect(await db.count('inbox', { processed_at_utc: below(secondsFromNow(-50)) })).toBe(1);
  expect(await db.count('inbox', { processed_at_utc: not(null) })).toBe(1);
});

test('rows come in the order of their numbers, not of their digits', async () => {
  await db.insertMany(
    'inbox',
    [9, 10, 100, 2].map((n) => ({ external_message_id: `m${n}`, sequence: String(n) })),
  );
  const rows = await db.rows('inbox', {}, { columns: ['sequence'] });
  expect(rows.map(({ sequence }) => sequence)).toEqual(['2', '9', '10', '100']);
});

test('rows that the gateway makes are Relaybox’s own: a message, its key and its lane are claimed', async () => {
  await db.inbox.ingest([inboxRow({ partitionKey: 'k' })]);
  await db.update('keys', { head_type: 'other' });
  const other = claimRequest({ messageType: 'other' });
  expect((await db.inbox.claim(other)).messages).toEqual([]);
  expect(await db.rows('keys', {}, { columns: ['head_type'] })).toEqual([{ head_type: 'order.placed' }]);
  await db.remove('keys');
  const [{ sequence } = {}] = await db.rows('inbox', {}, { columns: ['sequence'] });
  await db.insert('keys', {
    partition_key: 'k',
    head_sequence: String(sequence),
    head_type: 'order.placed',
  });
  await db.update('inboxLanes', { paused_at_utc: secondsFromNow(0) }, { message_type: 'order.placed' });
  await db.insert('inboxLanes', { message_type: 'order.placed', paused_at_utc: secondsFromNow(0) });
  expect((await db.inbox.claim(claimRequest())).messages).toEqual([]);
  await db.clear('inboxLanes');
  expect((await db.inbox.claim(claimRequest())).messages).toHaveLength(1);
  await db.expireInboxLeases();
  expect((await db.inbox.claim(claimRequest())).messages).toHaveLength(1);
});

test('a row that is held makes others wait, and only until it is released', async () => {
  const id = await db.insert('outbox');
  await db.insert('outbox');
  const held = await db.hold('outbox', { id });
  const waiting = db.update('outbox', { state: 2 }, { id });
  await until(
    () => db.waiting(),
    (count) => count === 1,
  );
  await held.release();
  expect(await waiting).toBe(1);
});

test('a transaction sees its own writes, and others what it committed', async () => {
  const transaction = await db.begin();
  await transaction.add([{ destination: 'orders', messageType: 'order.placed', payload: 1 }]);
  await db.effects.write(transaction.tx, 'mine');
  expect(await db.within(transaction.tx).count('outbox')).toBe(1);
  const one = { postgres: 'SELECT $1::int AS one', sqlserver: 'SELECT @p1 AS [one]' };
  expect(await db.sqlWithin(transaction.tx, one, [1])).toEqual([{ one: 1 }]);
  await transaction.commit();
  expect(await db.effects.all()).toEqual(['mine']);
  expect(await db.count('outbox')).toBe(1);
  const undone = await db.begin();
  await db.effects.write(undone.tx, 'undone');
  await undone.rollback();
  expect(await db.effects.all()).toEqual(['mine']);
});

test('a session that the server ended commits nothing', async () => {
  for (const end of [db.endSession, db.loseCommit]) {
    const transaction = await db.begin();
    await db.effects.write(transaction.tx, 'never');
    await end(transaction.tx);
    await expect(transaction.commit()).rejects.toThrow();
  }
  expect(await db.effects.all()).toEqual([]);
});
