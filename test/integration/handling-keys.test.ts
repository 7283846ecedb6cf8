import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { Rejected } from '../../shared/message/errors.ts';
import { engine } from '../support/engine/engine.ts';
import { handlingOn, type TestHandler } from '../support/engine/handling.ts';
import { below } from '../support/engine/values.ts';
import { claimRequest, inboxRow } from '../support/inbox-rows.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
beforeEach(() => db.clear('effects', 'inbox', 'keys', 'outbox'));

const store = db.inbox;
const { handlerOf, write } = handlingOn(db);
const handle = handlerOf(store);
const effects = () => db.effects.all();

const placed = (id: string, key: string | null = 'k') =>
  inboxRow({ externalMessageId: id, partitionKey: key });
const cancelled = (id: string, key = 'k') => ({ ...placed(id, key), messageType: 'order.cancelled' });

test('two types of one key are handled in order, each by its own function, the first failing twice', async () => {
  await store.ingest([placed('p1'), cancelled('c1'), placed('p2'), cancelled('c2'), cancelled('x', 'other')]);
  const woken: string[] = [];
  let failures = 0;
  const run = (messageType: string) =>
    handle(
      async (message, tools) => {
        if (message.id === 'p1' && ++failures <= 2) throw new Error('not yet');
        await write(message, tools);
      },
      { messageType, wake: async (types) => void woken.push(...types) },
    );
  expect(await run('order.cancelled')).toMatchObject({ claimed: 1 });
  expect(await run('order.placed')).toMatchObject({ claimed: 3, handled: 1, retried: 2 });
  // Whoever ends a key's head wakes the next head's type, and wakes lead through the key to its end.
  expect(woken).toEqual(['order.cancelled']);
  while (woken.length > 0) await run(woken.shift() as string);
  expect(await effects()).toEqual(['x', 'p1', 'c1', 'p2', 'c2']);
  expect(await db.rows('keys')).toEqual([]);
});

test('under `block` a key waits behind its Failed message, under `skip` it goes on; other keys are none the wiser', async () => {
  const poison: TestHandler = async (message, tools) => {
    if (message.id.startsWith('bad')) throw new Rejected('bad');
    await write(message, tools);
  };
  await store.ingest([placed('bad1', 'a'), placed('a2', 'a'), placed('b1', 'b'), placed('free', null)]);
  expect(await handle(poison)).toMatchObject({ handled: 2, failed: 1 });
  expect((await effects()).sort()).toEqual(['b1', 'free']);
  await store.ingest([placed('bad2', 'c'), placed('c2', 'c')]);
  expect(await handle(poison, { onFailedKey: 'skip' })).toMatchObject({ handled: 1, failed: 1 });
  expect(await effects()).toContain('c2');
  expect(await effects()).not.toContain('a2');
});

test('one key is in one hand, however many functions look for work', async () => {
  const rows = Array.from({ length: 24 }, (_, n) => placed(`m${String(n).padStart(2, '0')}`, `k${n % 3}`));
  await store.ingest(rows);
  const running = new Map<string, number>();
  let together = 0;
  const watch: TestHandler = async (message, tools) => {
    const key = message.partitionKey ?? '';
    running.set(key, (running.get(key) ?? 0) + 1);
    together = Math.max(together, running.get(key) ?? 0);
    await sleep(2);
    if (Number(message.id.slice(1)) % 5 === 0 && message.attempt === 1) {
      running.set(key, (running.get(key) ?? 0) - 1);
      throw new Error('once');
    }
    await write(message, tools);
    running.set(key, (running.get(key) ?? 0) - 1);
  };
  const untilDone = async () => {
    while ((await db.count('inbox', { state: below(2) })) > 0) await handle(watch);
  };
  await Promise.all([untilDone(), untilDone(), untilDone()]);
  expect(together).toBe(1);
  const done = await effects();
  for (const key of [0, 1, 2]) {
    const own = rows.filter((_, n) => n % 3 === key).map((row) => row.externalMessageId);
    expect(done.filter((id) => own.includes(id))).toEqual(own);
  }
});

test('a key whose function was killed goes on after the lease, its head alone', async () => {
  await store.ingest([placed('p1'), placed('p2')]);
  await store.claim(claimRequest({ limit: 1, leaseMs: 20_000 }));
  expect(await handle(write)).toMatchObject({ claimed: 0 });
  const wait = await store.secondsToNextDue({ consumer: '', messageType: 'order.placed' });
  expect(wait).toBeGreaterThan(10);
  expect(wait).toBeLessThanOrEqual(20);
  await db.expireInboxLeases();
  const attempts: [string, number][] = [];
  await handle(async (message, tools) => {
    attempts.push([message.id, message.attempt]);
    await write(message, tools);
  });
  expect(attempts).toEqual([
    ['p1', 2],
    ['p2', 1],
  ]);
});
