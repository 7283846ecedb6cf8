import assert from 'node:assert/strict';
import type { NewInboxRow } from '../../store/inbox-store.ts';
import { type CaseOf, SHORT_MS, sleep, until } from '../case.ts';
import { only, sorted } from '../outbox/harness.ts';
import { claim, externalIds, fail, handle, type InboxHarness, inboxRow, ingestNew, TYPE } from './harness.ts';

const CANCELLED = 'order.cancelled';

function keyed(count: number, fields: Partial<NewInboxRow> = {}): NewInboxRow[] {
  return Array.from({ length: count }, () => inboxRow({ partitionKey: 'k', ...fields }));
}

/** Order per key: one at a time, across types, retries, Failed messages and requeues. */
export const keys: readonly CaseOf<InboxHarness>[] = [
  {
    promise: 6,
    name: 'messages of one key are handled one at a time, in order of arrival; other keys go beside them',
    async body(harness) {
      const { store, another } = harness;
      const rows = keyed(4);
      const others = [...keyed(2, { partitionKey: 'l' }), inboxRow()];
      await ingestNew(store, [...rows.slice(0, 2), ...others, ...rows.slice(2)]);
      const { messages } = await claim(store);
      assert.deepEqual(
        sorted(externalIds(messages)),
        sorted([rows[0], others[0], others[2]].map((row) => row?.externalMessageId ?? '')),
      );
      assert.deepEqual((await claim(another)).messages, [], 'their keys are leased');
      const head = messages.find(({ partitionKey }) => partitionKey === 'k');
      assert.ok(head);
      const order = [head.externalMessageId];
      assert.deepEqual(await handle(harness, head), [TYPE], 'the next of the key is told');
      for (let n = 1; n < 4; n++) {
        const next = only((await claim(n % 2 ? another : store)).messages);
        order.push(next.externalMessageId);
        await handle(harness, next);
      }
      assert.deepEqual(order, externalIds(rows));
    },
  },
  {
    promise: 6,
    name: 'a message that arrives while its key is at work waits for its turn',
    async body(harness) {
      const { store, another } = harness;
      const [first, second] = keyed(2);
      assert.ok(first && second);
      await ingestNew(store, [first]);
      const running = only((await claim(store)).messages);
      await ingestNew(another, [second]);
      assert.deepEqual((await claim(another)).messages, []);
      assert.deepEqual(await handle(harness, running), [TYPE]);
      assert.deepEqual(externalIds((await claim(another)).messages), [second.externalMessageId]);
    },
  },
  {
    promise: 6,
    name: 'a key is in order across message types, its first message failing twice',
    async body(harness) {
      const { store, another, effects } = harness;
      const [placed, cancelled] = [...keyed(1), ...keyed(1, { messageType: CANCELLED })];
      assert.ok(placed && cancelled);
      await ingestNew(store, [placed, cancelled]);
      for (let attempt = 1; attempt <= 3; attempt++) {
        const message = await until('the first is due', async () => {
          assert.deepEqual((await claim(another, { messageType: CANCELLED })).messages, []);
          return (await claim(store)).messages[0];
        });
        assert.equal(message.attempt, attempt);
        assert.deepEqual((await claim(another, { messageType: CANCELLED })).messages, []);
        if (attempt < 3) await fail(store, message, 0.05);
        else assert.deepEqual(await handle(harness, message), [CANCELLED]);
      }
      const second = only((await claim(another, { messageType: CANCELLED })).messages);
      assert.deepEqual(await handle(harness, second, another), []);
      assert.deepEqual(await effects(), externalIds([placed, cancelled]));
    },
  },
  {
    promise: 7,
    name: 'a type that nobody handles holds its own keys only',
    async body({ store }) {
      const unhandled = keyed(1, { messageType: 'nobody.home' });
      const free = inboxRow({ partitionKey: 'free' });
      await ingestNew(store, [...unhandled, ...keyed(2), free, inboxRow({ messageType: 'nobody.home' })]);
      assert.deepEqual(externalIds((await claim(store)).messages), [free.externalMessageId]);
    },
  },
  {
    promise: 6,
    name: 'one key of two sources, or of two consumers, is two keys',
    async body({ store }) {
      const [mine, source, consumer] = [
        ...keyed(1),
        ...keyed(1, { source: 'billing' }),
        ...keyed(1, { consumer: 'emails' }),
      ];
      assert.ok(mine && source && consumer);
      await ingestNew(store, [mine, source, consumer]);
      assert.deepEqual(
        sorted(externalIds((await claim(store)).messages)),
        sorted(externalIds([mine, source])),
      );
      assert.equal((await claim(store, { consumer: 'emails' })).messages.length, 1);
    },
  },
  {
    promise: 6,
    name: 'a keyed message given back is the first of its key again',
    async body({ store, another }) {
      const rows = keyed(2);
      await ingestNew(store, rows);
      const { messages } = await claim(store);
      await store.release(messages);
      const again = only((await claim(another)).messages);
      assert.equal(again.externalMessageId, rows[0]?.externalMessageId);
      assert.equal(again.attempt, 1);
    },
  },
  {
    promise: 6,
    name: 'a key whose worker is gone goes on with the same message, alone',
    async body(harness) {
      const { store, another, effects } = harness;
      const rows = keyed(2);
      await ingestNew(store, rows);
      assert.equal((await claim(store, { leaseMs: SHORT_MS })).messages.length, 1);
      await sleep(SHORT_MS + 30);
      await ingestNew(store, [inboxRow()]);
      const { messages, alone } = await claim(another);
      const again = only(messages);
      assert.equal(alone, true);
      assert.equal(again.externalMessageId, rows[0]?.externalMessageId);
      assert.equal(again.attempt, 2);
      await handle(harness, again, another);
      const rest = await claim(store);
      assert.equal(rest.messages.length, 2);
      assert.deepEqual(await effects(), [rows[0]?.externalMessageId]);
    },
  },
  ...(['block', 'skip'] as const).flatMap((onFailedKey) =>
    (['rejected', 'retries used up', 'leases lost'] as const).map((how) => ({
      promise: 6,
      name: `behind a message that is Failed for good (${how}) its key ${onFailedKey === 'block' ? 'waits' : 'goes on'}`,
      body: (harness: InboxHarness) => failedForGood(harness, onFailedKey, how),
    })),
  ),
  {
    promise: 6,
    name: 'a blocked key goes on when its Failed message is requeued and handled',
    async body(harness) {
      const { store, requeue, effects } = harness;
      const rows = [...keyed(1), ...keyed(1, { messageType: CANCELLED })];
      await ingestNew(store, rows);
      await fail(store, only((await claim(store)).messages), undefined);
      assert.deepEqual((await claim(store, { messageType: CANCELLED })).messages, []);
      await requeue(rows[0] ?? inboxRow());
      assert.deepEqual((await claim(store, { messageType: CANCELLED })).messages, []);
      assert.deepEqual(await handle(harness, only((await claim(store)).messages)), [CANCELLED]);
      await handle(harness, only((await claim(store, { messageType: CANCELLED })).messages));
      assert.deepEqual(await effects(), externalIds(rows));
    },
  },
  {
    promise: 6,
    name: 'a Failed message that is requeued while a later one of its key runs waits for that one, and is next',
    async body(harness) {
      const { store, another, requeue, effects } = harness;
      const rows = [...keyed(2), ...keyed(1, { messageType: CANCELLED })];
      const [first, second, third] = externalIds(rows);
      await ingestNew(store, rows);
      const head = only((await claim(store, { onFailedKey: 'skip' })).messages);
      await fail(store, head, undefined, 'skip');
      const running = only((await claim(store, { onFailedKey: 'skip' })).messages);
      assert.equal(running.externalMessageId, second);
      await requeue(rows[0] ?? inboxRow());
      assert.deepEqual((await claim(another)).messages, [], 'never two of a key at once');
      assert.deepEqual((await claim(another, { messageType: CANCELLED })).messages, []);
      assert.deepEqual(await handle(harness, running), [TYPE]);
      assert.deepEqual((await claim(another, { messageType: CANCELLED })).messages, []);
      await handle(harness, only((await claim(another)).messages), another);
      await handle(harness, only((await claim(another, { messageType: CANCELLED })).messages));
      assert.deepEqual(await effects(), [second, first, third]);
    },
  },
];

async function failedForGood(
  harness: InboxHarness,
  onFailedKey: 'block' | 'skip',
  how: 'rejected' | 'retries used up' | 'leases lost',
): Promise<void> {
  const { store, inspect } = harness;
  const rows = [...keyed(1, { maxRetries: 1 }), ...keyed(1, { messageType: CANCELLED })];
  const [row] = rows;
  assert.ok(row);
  await ingestNew(store, rows);
  const woken: string[] = [];
  await until('the first message is Failed', async () => {
    const leaseMs = how === 'leases lost' ? SHORT_MS : 60_000;
    const result = await claim(store, { onFailedKey, leaseMs });
    woken.push(...result.nextTypes);
    for (const message of result.messages) {
      if (how === 'leases lost') continue;
      const settled = await fail(store, message, how === 'rejected' ? undefined : 0, onFailedKey);
      woken.push(...settled.nextTypes);
    }
    return (await inspect(row))?.state === 3;
  });
  const { messages } = await claim(store, { messageType: CANCELLED, onFailedKey });
  assert.deepEqual(externalIds(messages), onFailedKey === 'block' ? [] : externalIds(rows.slice(1)));
  assert.equal(woken.includes(CANCELLED), onFailedKey === 'skip', 'a type is woken where the key goes on');
  const late = keyed(1, { messageType: CANCELLED });
  await ingestNew(store, late);
  assert.deepEqual(
    (await claim(store, { messageType: CANCELLED })).messages,
    [],
    'one that comes later waits too',
  );
  const other = inboxRow({ partitionKey: 'other' });
  await ingestNew(store, [other]);
  assert.deepEqual(externalIds((await claim(store)).messages), [other.externalMessageId]);
}
