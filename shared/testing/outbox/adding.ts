import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type CaseOf, until } from '../case.ts';
import {
  ids,
  KEEP,
  leaseAll,
  mustLease,
  type OutboxHarness,
  only,
  outboxRow,
  outcome,
  readAll,
  sorted,
} from './harness.ts';

const LANE_OF_OTHERS = 'legacy.orders-1_x';

/** What becomes of a message on its way in: atomic with its transaction, once per id, text as it was given. */
export const adding: readonly CaseOf<OutboxHarness>[] = [
  {
    promise: 1,
    name: 'a message of a transaction that commits is due, and not before',
    async body({ store, begin }) {
      const row = outboxRow();
      const transaction = await begin();
      await transaction.add([row]);
      assert.equal(await leaseAll(store), undefined, 'an uncommitted message must not be seen');
      await transaction.commit();
      assert.deepEqual(ids(await readAll(store, await mustLease(store))), [row.id]);
    },
  },
  {
    promise: 1,
    name: 'a message of a transaction that rolls back was never there',
    async body({ store, begin, inspect }) {
      const row = outboxRow();
      const transaction = await begin();
      await transaction.add([row]);
      await transaction.rollback();
      assert.equal(await inspect(row.id), undefined);
      assert.equal(await leaseAll(store), undefined);
      assert.deepEqual(await store.add([row]), [{ id: row.id, added: true }], 'its id is free again');
    },
  },
  {
    promise: 2,
    name: 'an id that is there already answers added: false and changes nothing',
    async body({ store, inspect }) {
      const row = outboxRow();
      assert.deepEqual(await store.add([row]), [{ id: row.id, added: true }]);
      const before = await inspect(row.id);
      assert.deepEqual(await store.add([{ ...row, payload: '{"other":true}' }]), [
        { id: row.id, added: false },
      ]);
      assert.deepEqual(await inspect(row.id), before);
      const message = only(await readAll(store, await mustLease(store)));
      assert.equal(message.payload, row.payload);
    },
  },
  {
    promise: 2,
    name: 'an id given twice in one batch is added once, and the answers keep the order',
    async body({ store }) {
      const [first, second, third] = [outboxRow(), outboxRow(), outboxRow()];
      await store.add([second]);
      assert.deepEqual(await store.add([first, second, third, first]), [
        { id: first.id, added: true },
        { id: second.id, added: false },
        { id: third.id, added: true },
        { id: first.id, added: false },
      ]);
      assert.equal((await readAll(store, await mustLease(store))).length, 3);
    },
  },
  {
    promise: 2,
    name: 'a duplicate leaves the transaction usable',
    async body({ store, begin, inspect }) {
      const there = outboxRow();
      await store.add([there]);
      const transaction = await begin();
      const behind = outboxRow();
      assert.equal(only(await transaction.add([there])).added, false);
      assert.equal(only(await transaction.add([behind])).added, true);
      await transaction.commit();
      assert.equal((await inspect(behind.id))?.state, 0);
    },
  },
  {
    promise: 2,
    name: 'a published message whose row is kept still answers added: false',
    async body({ store }) {
      const row = outboxRow();
      await store.add([row]);
      const lease = await mustLease(store);
      await store.settle(lease, outcome({ published: await readAll(store, lease) }), KEEP);
      assert.equal(only(await store.add([row])).added, false);
    },
  },
  {
    promise: 1,
    name: 'nothing added is nothing answered',
    async body({ store }) {
      assert.deepEqual(await store.add([]), []);
    },
  },
  {
    promise: 1,
    name: 'what was added is what is read: text, headers, key and counts',
    async body({ store }) {
      const row = outboxRow({
        payload: '{"n":12345678901234567890,"x":1.0,"text":"Grüße 🚚 \\u0000 \\"q\\" $1 \'s\' \\\\"}',
        headers: { tenant: 'a b', 'x-quote': '"\\{}' },
        correlationId: 'c-1 ',
        partitionKey: 'Kunde/ß 1 ',
        maxRetries: 7,
      });
      const plain = outboxRow({ payload: 'no json at all' });
      await store.add([row, plain]);
      const read = await readAll(store, await mustLease(store));
      const message = read.find(({ id }) => id === row.id);
      assert.ok(message);
      assert.equal(message.destination, row.destination);
      assert.equal(message.messageType, row.messageType);
      assert.equal(message.payload, row.payload);
      assert.deepEqual({ ...message.headers }, row.headers);
      assert.equal(message.correlationId, row.correlationId);
      assert.equal(message.partitionKey, row.partitionKey);
      assert.equal(message.maxRetries, 7);
      assert.equal(message.retryCount, 0);
      assert.equal(message.replay, 0);
      assert.equal(message.payloadBytes, Buffer.byteLength(row.payload));
      const other = read.find(({ id }) => id === plain.id);
      assert.ok(other);
      assert.equal(other.payload, 'no json at all');
      assert.deepEqual({ ...other.headers }, {});
      assert.equal(other.partitionKey, null);
    },
  },
  {
    promise: 7,
    name: 'a delayed message is not due before its time, and is afterwards',
    async body({ store, inspect }) {
      const soon = outboxRow({ delaySeconds: 0.3 });
      const later = outboxRow({ delaySeconds: 3600 });
      const now = outboxRow();
      await store.add([soon, later, now]);
      const waits = (await inspect(later.id))?.waitsSeconds;
      assert.ok(waits !== undefined && waits !== null && waits > 3500 && waits <= 3600, `waits ${waits} s`);
      const first = await mustLease(store);
      const early = await readAll(store, first);
      assert.ok(ids(early).includes(now.id));
      assert.ok(!ids(early).includes(later.id));
      await store.settle(first, outcome({ published: early }), KEEP);
      await store.release(first);
      if (ids(early).includes(soon.id)) return; // the machine slept past the delay
      const lease = await until('the delayed message is due', () => leaseAll(store));
      assert.deepEqual(ids(await readAll(store, lease)), [soon.id]);
    },
  },
  {
    promise: 7,
    name: "another program's row is due at once, however fast its clock is, and keeps its own retries",
    async body({ store, insertForeignRow, inspect }) {
      const id = randomUUID();
      await insertForeignRow({
        id,
        destination: LANE_OF_OTHERS,
        messageType: 'OrderPlaced',
        payload: '<order/>',
        maxRetries: 5,
        state: 0,
        createdInSeconds: 300,
      });
      assert.deepEqual(await store.dueLanes(), [{ destination: LANE_OF_OTHERS, state: 'ready' }]);
      const lease = await mustLease(store, LANE_OF_OTHERS);
      const message = only(await readAll(store, lease));
      assert.equal(message.id, id);
      assert.equal(message.payload, '<order/>');
      assert.equal(message.maxRetries, 5);
      await store.settle(lease, outcome({ published: [message] }), KEEP);
      assert.equal((await inspect(id))?.state, 2);
    },
  },
  {
    promise: 5,
    name: "another program's running claim is respected, and taken over when it has run out",
    async body({ store, insertForeignRow, inspect }) {
      const [running, expired] = [randomUUID(), randomUUID()];
      const row = {
        destination: LANE_OF_OTHERS,
        messageType: 't',
        payload: '{}',
        maxRetries: 5,
        state: 1,
      } as const;
      await insertForeignRow({ ...row, id: running, lockedForMs: 60_000 });
      assert.equal(await leaseAll(store, LANE_OF_OTHERS), undefined, 'its claim runs');
      assert.deepEqual(await store.dueLanes(), []);
      await insertForeignRow({ ...row, id: expired, lockedForMs: -1000 });
      const lease = await mustLease(store, LANE_OF_OTHERS);
      const message = only(await readAll(store, lease));
      assert.equal(message.id, expired);
      await store.settle(lease, outcome({ published: [message] }), KEEP);
      assert.equal((await inspect(expired))?.state, 2);
      assert.equal((await inspect(running))?.state, 1);
    },
  },
  {
    promise: 1,
    name: 'many at once are all there, in the order given',
    async body({ store }) {
      const rows = Array.from({ length: 300 }, (_, n) => outboxRow({ partitionKey: `k${n % 3}` }));
      assert.ok((await store.add(rows)).every(({ added }) => added));
      const read = await readAll(store, await mustLease(store));
      assert.deepEqual(sorted(ids(read)), sorted(ids(rows)));
      for (const key of ['k0', 'k1', 'k2']) {
        assert.deepEqual(
          ids(read.filter((message) => message.partitionKey === key)),
          ids(rows.filter((row) => row.partitionKey === key)),
        );
      }
    },
  },
];
