import assert from 'node:assert/strict';
import { type CaseOf, LONG_MS } from '../case.ts';
import {
  ids,
  keyed,
  LANE,
  mustLease,
  type OutboxHarness,
  only,
  outboxRow,
  readAll,
  sorted,
} from './harness.ts';

const MANY = 8 * 1024 * 1024;

/** What a read brings: in order, within bounds, of one lane, and without a write. */
export const reading: readonly CaseOf<OutboxHarness>[] = [
  {
    promise: 7,
    name: 'lanes are apart: a lease and a read of one bring nothing of another',
    async body({ store }) {
      const [orders, upper, events] = [
        outboxRow({ partitionKey: 'same' }),
        outboxRow({ destination: 'Orders', partitionKey: 'same' }),
        outboxRow({ destination: 'events', partitionKey: 'same' }),
      ];
      await store.add([orders, upper, events]);
      const due = await store.dueLanes();
      assert.deepEqual(
        sorted(due.map(({ destination }) => destination)),
        sorted(['Orders', 'events', 'orders']),
      );
      for (const row of [events, orders, upper]) {
        const lease = await mustLease(store, row.destination);
        assert.equal(lease.destination, row.destination);
        assert.deepEqual(ids(await readAll(store, lease)), [row.id]);
      }
    },
  },
  {
    promise: 3,
    name: 'a read writes nothing to a message',
    async body({ store, inspect }) {
      const rows = [...keyed('k', 3), outboxRow()];
      await store.add(rows);
      const before = await Promise.all(rows.map(({ id }) => inspect(id)));
      const lease = await mustLease(store);
      await readAll(store, lease);
      await readAll(store, lease);
      assert.deepEqual(await Promise.all(rows.map(({ id }) => inspect(id).then((row) => row?.version))), [
        ...before.map((row) => row?.version),
      ]);
    },
  },
  {
    promise: 6,
    name: 'a read comes in the order of adding, not of ids, times or keys',
    async body({ store }) {
      const rows = keyed('k', 40);
      for (const row of rows.slice(0, 10)) await store.add([row]);
      await store.add(rows.slice(10));
      assert.deepEqual(ids(await readAll(store, await mustLease(store))), ids(rows));
    },
  },
  {
    promise: 7,
    name: 'a read brings no more messages than asked for, the first of each bucket, and says that there are more',
    async body({ store }) {
      const rows = Array.from({ length: 60 }, (_, n) => outboxRow({ partitionKey: `k${n % 4}` }));
      await store.add(rows);
      const lease = await mustLease(store);
      const read = await store.read(lease, { limit: 7, maxBytes: MANY });
      assert.equal(read.messages.length, 7);
      assert.equal(read.more, true);
      for (const key of ['k0', 'k1', 'k2', 'k3']) {
        const got = ids(read.messages.filter(({ partitionKey }) => partitionKey === key));
        const there = ids(rows.filter(({ partitionKey }) => partitionKey === key));
        assert.deepEqual(got, there.slice(0, got.length), 'the first ones of the key');
      }
      const all = await store.read(lease, { limit: 1000, maxBytes: MANY });
      assert.equal(all.messages.length, 60);
      assert.equal(all.more, false);
    },
  },
  {
    promise: 7,
    name: 'a read is bounded by bytes as stored, but brings at least one message',
    async body({ store }) {
      // Two bytes each in UTF-8: counted as characters, four would fit.
      const rows = keyed('k', 4, { payload: 'ß'.repeat(500) });
      await store.add(rows);
      const lease = await mustLease(store);
      const two = await store.read(lease, { limit: 100, maxBytes: 2500 });
      assert.deepEqual(ids(two.messages), ids(rows.slice(0, 2)));
      assert.equal(two.more, true);
      const one = await store.read(lease, { limit: 100, maxBytes: 10 });
      assert.deepEqual(ids(one.messages), ids(rows.slice(0, 1)));
      const four = await store.read(lease, { limit: 100, maxBytes: 4000 });
      assert.equal(four.messages.length, 4);
    },
  },
  {
    promise: 6,
    name: 'what is under way is left out by its id, and the rest comes in order',
    async body({ store }) {
      const rows = keyed('k', 5);
      await store.add(rows);
      const lease = await mustLease(store);
      const seen: string[] = [];
      for (let round = 0; round < 3; round++) {
        const { messages } = await store.read(lease, { limit: 2, maxBytes: MANY, except: seen });
        seen.push(...ids(messages));
      }
      assert.deepEqual(seen, ids(rows));
      const end = await store.read(lease, { limit: 2, maxBytes: MANY, except: seen });
      assert.deepEqual(end, { messages: [], more: false });
      assert.equal((await readAll(store, lease)).length, 5, 'they are all still there');
    },
  },
  {
    promise: 1,
    name: 'a message that commits late, below what was read, comes first in the next read',
    async body({ store, begin }) {
      const [early, late] = keyed('k', 2);
      assert.ok(early && late);
      const transaction = await begin();
      await transaction.add([early]);
      await store.add([late]);
      const lease = await mustLease(store);
      const before = only(await readAll(store, lease));
      assert.equal(before.id, late.id);
      await transaction.commit();
      assert.deepEqual(ids(await readAll(store, lease)), [early.id, late.id]);
    },
  },
  {
    promise: 7,
    name: 'a read leaves out the ids it is told to',
    async body({ store }) {
      const rows = [outboxRow(), outboxRow(), outboxRow()];
      await store.add(rows);
      const lease = await mustLease(store);
      const except = [rows[0]?.id ?? '', rows[2]?.id ?? ''];
      const left = await store.read(lease, { limit: 1, maxBytes: MANY, except });
      assert.deepEqual(ids(left.messages), [rows[1]?.id]);
    },
  },
  {
    promise: 7,
    name: 'a read brings only the ids it is told to, where they are due',
    async body({ store }) {
      const rows = [outboxRow(), outboxRow(), outboxRow({ delaySeconds: 3600 })];
      await store.add(rows);
      const lease = await mustLease(store);
      const wanted = [rows[1]?.id ?? '', rows[2]?.id ?? ''];
      assert.deepEqual(ids(await readAll(store, lease, { only: wanted })), wanted.slice(0, 1));
      assert.deepEqual(await readAll(store, lease, { only: [] }), []);
    },
  },
  {
    promise: 7,
    name: 'a thousand waiting messages of a lane hide none that is due',
    async body({ store }) {
      await store.add(Array.from({ length: 1000 }, () => outboxRow({ delaySeconds: 3600 })));
      const due = outboxRow();
      await store.add([due]);
      const lease = await store.lease({ destination: LANE, limit: 1, leaseMs: LONG_MS });
      assert.ok(lease, 'the one bucket with due work is found');
      assert.deepEqual(ids(await readAll(store, lease, { limit: 1 })), [due.id]);
    },
  },
];
