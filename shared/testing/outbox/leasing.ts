import assert from 'node:assert/strict';
import { defaults } from '../../delivery/defaults.ts';
import { type CaseOf, LONG_MS, SHORT_MS, sleep, until } from '../case.ts';
import {
  ids,
  KEEP,
  keyed,
  LANE,
  leaseAll,
  mustLease,
  type OutboxHarness,
  only,
  outboxRow,
  outcome,
  readAll,
  sorted,
} from './harness.ts';

/** Who may publish what: leases on buckets, their end, and their return. */
export const leasing: readonly CaseOf<OutboxHarness>[] = [
  {
    promise: 5,
    name: 'a leased bucket is nobody else’s',
    async body({ store, another }) {
      await store.add(Array.from({ length: 200 }, () => outboxRow()));
      const mine = await mustLease(store);
      assert.equal(await leaseAll(another), undefined);
      await store.add([outboxRow({ destination: 'emails' })]);
      const other = await mustLease(another, 'emails');
      assert.notEqual(other.token, mine.token);
    },
  },
  {
    promise: 5,
    name: 'a lease takes no more buckets than asked for, and the next takes others',
    async body({ store, another }) {
      await store.add(Array.from({ length: 300 }, () => outboxRow()));
      const first = await store.lease({ destination: LANE, limit: 3, leaseMs: LONG_MS });
      const second = await another.lease({ destination: LANE, limit: 3, leaseMs: LONG_MS });
      assert.equal(first?.buckets.length, 3);
      assert.equal(second?.buckets.length, 3);
      assert.equal(new Set([...first.buckets, ...second.buckets]).size, 6, 'no bucket in two hands');
      assert.ok([...first.buckets].every((bucket) => bucket >= 0 && bucket < defaults.buckets));
    },
  },
  {
    promise: 5,
    name: 'leases asked for at the same moment never share a bucket',
    async body({ store, another }) {
      await store.add(Array.from({ length: 400 }, () => outboxRow()));
      const leases = await Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          (n % 2 === 0 ? store : another).lease({ destination: LANE, limit: 16, leaseMs: LONG_MS }),
        ),
      );
      const buckets = leases.flatMap((lease) => lease?.buckets ?? []);
      assert.equal(new Set(buckets).size, buckets.length, 'a bucket was given twice');
      assert.ok(buckets.length > 0, 'somebody got some');
      const tokens = leases.flatMap((lease) => (lease ? [lease.token] : []));
      assert.equal(new Set(tokens).size, tokens.length, 'each taking has a token of its own');
    },
  },
  {
    promise: 5,
    name: 'a read gives messages of the leased buckets only',
    async body({ store }) {
      await store.add(Array.from({ length: 300 }, () => outboxRow()));
      const lease = await store.lease({ destination: LANE, limit: 2, leaseMs: LONG_MS });
      assert.ok(lease);
      const read = await readAll(store, lease);
      assert.ok(read.length > 0);
      assert.ok(read.every(({ bucket }) => lease.buckets.includes(bucket)));
    },
  },
  {
    promise: 5,
    name: 'rows of one key share a bucket, whatever their type',
    async body({ store }) {
      const rows = [...keyed('k', 5), ...keyed('k', 5, { messageType: 'order.cancelled' })];
      await store.add(rows);
      const lease = await mustLease(store);
      assert.equal(lease.buckets.length, 1);
      assert.deepEqual(ids(await readAll(store, lease)), ids(rows));
    },
  },
  {
    promise: 4,
    name: 'a lease that nobody gives back runs out, and its messages go on untouched',
    async body({ store, another, inspect }) {
      const row = outboxRow();
      await store.add([row]);
      const abandoned = await mustLease(store, LANE, SHORT_MS);
      assert.equal((await readAll(store, abandoned)).length <= 1, true);
      const lease = await until('the lease runs out', () => leaseAll(another));
      assert.notEqual(lease.token, abandoned.token);
      assert.deepEqual(ids(await readAll(another, lease)), [row.id]);
      assert.equal((await inspect(row.id))?.retryCount, 0, 'a lost lease is no failure of an outbox message');
    },
  },
  {
    promise: 4,
    name: 'a bucket given back is free at once',
    async body({ store, another }) {
      await store.add([outboxRow()]);
      const lease = await mustLease(store);
      await store.release(lease);
      await mustLease(another);
    },
  },
  {
    promise: 5,
    name: 'a release with a token of before leaves the new holder alone',
    async body({ store, another }) {
      await store.add([outboxRow()]);
      const old = await mustLease(store, LANE, SHORT_MS);
      await until('the lease runs out', () => leaseAll(another));
      await store.release(old);
      assert.equal(await leaseAll(store), undefined, 'the new holder’s lease was released');
    },
  },
  {
    promise: 5,
    name: 'a settle extends the lease',
    async body({ store, another }) {
      await store.add([outboxRow(), outboxRow()]);
      // A slow machine may lose the short lease before it settles: then try with a longer one.
      const { lease, leaseMs } = await until('a lease is held until it settles', async () => {
        for (let leaseMs = 400; ; leaseMs *= 2) {
          const lease = await mustLease(store, LANE, leaseMs);
          const result = await store.settle(lease, outcome({}), KEEP);
          if (result.buckets.length > 0) {
            assert.deepEqual([...result.buckets].sort(), [...lease.buckets].sort());
            return { lease, leaseMs };
          }
          await sleep(leaseMs);
        }
      });
      await sleep(leaseMs + 50);
      assert.equal(await leaseAll(another), undefined, 'the lease ended when it first would have');
      const published = await readAll(store, lease);
      const result = await store.settle(lease, outcome({ published }), KEEP);
      assert.deepEqual(sorted(result.settled), sorted(ids(published)));
    },
  },
  {
    promise: 5,
    name: 'named buckets are leased whether due or not, and not while another holds them',
    async body({ store, another }) {
      const mine = await store.lease({ destination: LANE, limit: 64, leaseMs: LONG_MS, buckets: [5, 9] });
      assert.deepEqual([...(mine?.buckets ?? [])].sort(), [5, 9]);
      const theirs = await another.lease({
        destination: LANE,
        limit: 64,
        leaseMs: LONG_MS,
        buckets: [9, 10],
      });
      assert.deepEqual(theirs?.buckets, [10]);
      assert.equal(
        await another.lease({ destination: LANE, limit: 64, leaseMs: LONG_MS, buckets: [9] }),
        undefined,
      );
    },
  },
  {
    promise: 7,
    name: 'a lane without due messages gives no lease',
    async body({ store }) {
      assert.equal(await leaseAll(store), undefined);
      await store.add([outboxRow({ delaySeconds: 3600 })]);
      assert.equal(await leaseAll(store), undefined);
      await store.add([outboxRow()]);
      const lease = await mustLease(store);
      await store.settle(lease, outcome({ published: await readAll(store, lease) }), KEEP);
      await store.release(lease);
      assert.equal(await leaseAll(store), undefined);
    },
  },
  {
    promise: 5,
    name: 'bucketsOf names lane and bucket of unfinished messages only',
    async body({ store, discard }) {
      const [due, done, gone] = [outboxRow({ partitionKey: 'k' }), outboxRow(), outboxRow()];
      await store.add([due, done, gone]);
      const lease = await mustLease(store);
      const read = await readAll(store, lease);
      const published = read.filter(({ id }) => id === done.id);
      await store.settle(lease, outcome({ published }), KEEP);
      await discard(gone.id);
      const found = only(await store.bucketsOf([due.id, done.id, gone.id, outboxRow().id]));
      assert.equal(found.id, due.id);
      assert.equal(found.destination, LANE);
      assert.equal(found.bucket, read.find(({ id }) => id === due.id)?.bucket);
    },
  },
];
