import assert from 'node:assert/strict';
import type { OutboxRow } from '../../message/message.ts';
import type { ClaimedOutboxMessage, LaneLease, OnFailedKey, OutboxStore } from '../../store/outbox-store.ts';
import { type CaseOf, until } from '../case.ts';
import {
  failure,
  ids,
  KEEP,
  keyed,
  leaseAll,
  mustLease,
  type OutboxHarness,
  only,
  outboxRow,
  outcome,
  readAll,
} from './harness.ts';

/** Order per key: across retries, behind Failed messages, and without holding up others. */
export const keys: readonly CaseOf<OutboxHarness>[] = [
  {
    promise: 6,
    name: 'nothing of a key is read while its first message waits for a retry, and other keys go on',
    async body({ store }) {
      const rows = keyed('k', 3);
      const others = [outboxRow(), ...keyed('other', 2)];
      await store.add([...rows, ...others]);
      const { lease } = await failHead(store, rows, 3600);
      const read = ids(await readAll(store, lease));
      assert.deepEqual(read.sort(), ids(others).sort());
      const late = outboxRow({ partitionKey: 'k' });
      await store.add([late]);
      assert.ok(!ids(await readAll(store, lease)).includes(late.id), 'nor one that is added meanwhile');
    },
  },
  {
    promise: 6,
    name: 'followers of a waiting message leave what is due: the lane does not look due for them',
    async body({ store, inspect }) {
      const rows = keyed('k', 3);
      await store.add(rows);
      const { lease } = await failHead(store, rows, 3600);
      assert.deepEqual(await readAll(store, lease), []);
      for (const row of rows.slice(1)) {
        const follower = await inspect(row.id);
        assert.equal(follower?.state, 0);
        assert.equal(follower.held, true, 'met behind a waiting message, it is held');
      }
      await store.release(lease);
      assert.deepEqual(await store.dueLanes(), []);
      assert.equal(await leaseAll(store), undefined);
    },
  },
  {
    promise: 6,
    name: 'a key goes on in order once its first message is published, those added meanwhile last',
    async body({ store }) {
      const rows = keyed('k', 4);
      await store.add(rows);
      const { lease } = await failHead(store, rows, 0.15);
      await readAll(store, lease);
      const late = keyed('k', 2);
      await store.add(late);
      await readAll(store, lease);
      const order = await publishOneByOne(store, lease, rows.length + late.length);
      assert.deepEqual(order, ids([...rows, ...late]));
    },
  },
  {
    promise: 6,
    name: 'the settle that lets followers go names their bucket, to be read again',
    async body({ store }) {
      const rows = keyed('k', 3);
      await store.add(rows);
      const { lease } = await failHead(store, rows, 0);
      const head = await until('the first message comes back', async () => {
        const read = await readAll(store, lease);
        assert.equal(read[0] === undefined || read[0].id === rows[0]?.id, true, 'a follower came first');
        return read[0];
      });
      const result = await store.settle(lease, outcome({ published: [head] }), KEEP);
      assert.deepEqual(result.freed, [head.bucket]);
      assert.deepEqual(ids(await readAll(store, lease)), ids(rows.slice(1)));
    },
  },
  {
    promise: 6,
    name: 'order survives a retry of every message of the key',
    async body({ store }) {
      const rows = keyed('k', 5);
      await store.add([...rows, ...keyed('free', 3)]);
      const lease = await mustLease(store);
      const order: string[] = [];
      const failedOnce = new Set<string>();
      while (order.length < rows.length) {
        const read = (await readAll(store, lease)).filter(({ partitionKey }) => partitionKey === 'k');
        const head = read[0];
        if (!head) continue;
        if (failedOnce.has(head.id)) {
          await store.settle(lease, outcome({ published: [head] }), KEEP);
          order.push(head.id);
        } else {
          failedOnce.add(head.id);
          await store.settle(lease, failure(head, 0.02), KEEP);
        }
      }
      assert.deepEqual(order, ids(rows));
    },
  },
  {
    promise: 6,
    name: 'hundreds of held followers are let go lowest first',
    async body({ store, inspect }) {
      const rows = keyed('k', 450);
      await store.add(rows);
      const { lease } = await failHead(store, rows, 0.3);
      await until('the followers are held', async () => {
        await readAll(store, lease);
        return (await inspect(rows[1]?.id ?? ''))?.held;
      });
      const order: string[] = [];
      await until('all are published', async () => {
        const published = await readAll(store, lease, { limit: 100 });
        order.push(...ids(published));
        await store.settle(lease, outcome({ published }), KEEP);
        return order.length === rows.length;
      });
      assert.deepEqual(order, ids(rows));
    },
  },
  ...(['block', 'skip'] as const).flatMap((onFailedKey) =>
    (['rejected', 'retries used up'] as const).map((how) => ({
      promise: 6,
      name: `behind a message that is Failed for good (${how}) its key ${onFailedKey === 'block' ? 'waits' : 'goes on'}`,
      body: (harness: OutboxHarness) => failedForGood(harness, onFailedKey, how),
    })),
  ),
  {
    promise: 6,
    name: 'a blocked key goes on when its Failed message is requeued and published',
    async body({ store, requeue }) {
      const rows = keyed('k', 3);
      await store.add(rows);
      const lease = await mustLease(store);
      const head = (await readAll(store, lease))[0];
      assert.ok(head);
      await store.settle(lease, outcome({ rejected: [{ message: head, reason: 'x' }] }), KEEP);
      assert.deepEqual(await readAll(store, lease), []);
      await store.release(lease);
      await requeue(head.id);
      const again = await mustLease(store);
      assert.deepEqual(await publishOneByOne(store, again, 3), ids(rows));
    },
  },
  {
    promise: 6,
    name: 'one key in two lanes is two keys',
    async body({ store }) {
      const rows = keyed('k', 2);
      const elsewhere = keyed('k', 2, { destination: 'events' });
      await store.add([...rows, ...elsewhere]);
      await failHead(store, rows, 3600);
      assert.deepEqual(ids(await readAll(store, await mustLease(store, 'events'))), ids(elsewhere));
    },
  },
  {
    promise: 7,
    name: 'thousands of held followers hide nothing that is due behind them in their bucket',
    async body({ store }) {
      const rows = keyed('k', 2500);
      await store.add(rows);
      const { lease, head } = await failHead(store, rows, 3600);
      // Enough keys that some share the blocked key's bucket.
      await store.add(Array.from({ length: 400 }, (_, n) => outboxRow({ partitionKey: `free-${n}` })));
      const found = await until('a due message of the same bucket is read', async () => {
        const read = await readAll(store, lease, { limit: 20 });
        assert.ok(read.every(({ partitionKey }) => partitionKey !== 'k'));
        return read[0];
      });
      assert.equal(found.bucket, head.bucket);
    },
  },
];

async function failHead(
  store: OutboxStore,
  rows: readonly OutboxRow[],
  retryInSeconds: number,
): Promise<{ lease: LaneLease; head: ClaimedOutboxMessage }> {
  const lease = await mustLease(store);
  const head = only((await readAll(store, lease)).filter(({ id }) => id === rows[0]?.id));
  await store.settle(lease, failure(head, retryInSeconds), KEEP);
  return { lease, head };
}

async function publishOneByOne(store: OutboxStore, lease: LaneLease, count: number): Promise<string[]> {
  const order: string[] = [];
  await until('the key is published', async () => {
    const head = (await readAll(store, lease))[0];
    if (head) {
      await store.settle(lease, outcome({ published: [head] }), KEEP);
      order.push(head.id);
    }
    return order.length === count;
  });
  return order;
}

async function failedForGood(
  { store, inspect }: OutboxHarness,
  onFailedKey: OnFailedKey,
  how: 'rejected' | 'retries used up',
): Promise<void> {
  const rows = keyed('k', 3, { maxRetries: 1 });
  const free = outboxRow();
  await store.add([...rows, free]);
  const options = { ...KEEP, onFailedKey };
  const { lease } =
    how === 'rejected' ? { lease: await mustLease(store) } : await failHead(store, rows, 0.05);
  const head = await until('the first message is due', async () =>
    (await readAll(store, lease)).find(({ partitionKey }) => partitionKey === 'k'),
  );
  assert.equal(head.id, rows[0]?.id);
  const end =
    how === 'rejected' ? outcome({ rejected: [{ message: head, reason: 'too large' }] }) : failure(head, 0);
  assert.deepEqual((await store.settle(lease, end, options)).ended, [head.id]);
  assert.equal((await inspect(head.id))?.state, 3);
  const followers = (await readAll(store, lease)).filter(({ partitionKey }) => partitionKey === 'k');
  assert.deepEqual(ids(followers), onFailedKey === 'block' ? [] : ids(rows.slice(1)));
  const late = outboxRow({ partitionKey: 'k' });
  await store.add([late]);
  const found = ids(await readAll(store, lease));
  assert.ok(found.includes(free.id), 'other messages of the lane go on');
  assert.equal(found.includes(late.id), onFailedKey === 'skip', 'one added later fares as the followers do');
  if (onFailedKey === 'block') {
    assert.equal((await inspect(rows[1]?.id ?? ''))?.held, true, 'held, where somebody looks');
  }
}
