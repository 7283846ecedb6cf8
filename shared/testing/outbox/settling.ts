import assert from 'node:assert/strict';
import type { AfterSuccess } from '../../store/outbox-store.ts';
import { type CaseOf, SHORT_MS, sleep, until } from '../case.ts';
import {
  failure,
  ids,
  KEEP,
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

/** Outcomes written: fenced, counted, and each message in exactly one place afterwards. */
export const settling: readonly CaseOf<OutboxHarness>[] = [
  ...(['keep', 'delete', 'archive'] as const).map((afterSuccess: AfterSuccess) => ({
    promise: 1,
    name: `a published message is done, once and for good (${afterSuccess})`,
    async body({ store, inspect, archived }: OutboxHarness) {
      const [row, other] = [outboxRow(), outboxRow()];
      await store.add([row, other]);
      const lease = await mustLease(store);
      const published = (await readAll(store, lease)).filter(({ id }) => id === row.id);
      const result = await store.settle(lease, outcome({ published }), { ...KEEP, afterSuccess });
      assert.deepEqual(result.settled, [row.id]);
      assert.deepEqual(result.ended, []);
      assert.deepEqual(result.lost, []);
      assert.deepEqual(sorted(result.buckets.map(String)), sorted(lease.buckets.map(String)));
      const after = await inspect(row.id);
      if (afterSuccess === 'keep') {
        assert.equal(after?.state, 2);
        assert.equal(after.ended, true);
      } else {
        assert.equal(after, undefined);
      }
      assert.equal(await archived(row.id), afterSuccess === 'archive');
      assert.deepEqual(ids(await readAll(store, lease)), [other.id]);
      const again = await store.settle(lease, outcome({ published }), { ...KEEP, afterSuccess });
      assert.deepEqual([again.settled, again.lost], [[], [row.id]]);
    },
  })),
  {
    promise: 5,
    name: 'a settle whose lease has run out changes nothing, and says so',
    async body({ store, inspect }) {
      const rows = [outboxRow(), outboxRow(), outboxRow()];
      await store.add(rows);
      const before = await Promise.all(rows.map(({ id }) => inspect(id).then((row) => row?.version)));
      const { lease, read } = await until('a lease is held until it reads', async () => {
        const lease = await leaseAll(store, LANE, SHORT_MS);
        const read = lease ? await readAll(store, lease) : [];
        return lease && read.length === 3 ? { lease, read } : undefined;
      });
      await sleep(SHORT_MS + 30);
      const [published, failed, rejected] = read;
      assert.ok(published && failed && rejected);
      const result = await store.settle(
        lease,
        {
          published: [published],
          failed: [{ message: failed, reason: 'x', retryInSeconds: 60 }],
          rejected: [{ message: rejected, reason: 'x' }],
        },
        KEEP,
      );
      assert.deepEqual(result.settled, []);
      assert.deepEqual(sorted(result.lost), sorted(ids(rows)));
      assert.deepEqual(result.buckets, []);
      assert.deepEqual(
        await Promise.all(rows.map(({ id }) => inspect(id).then((row) => row?.version))),
        before,
      );
      await mustLease(store);
    },
  },
  {
    promise: 5,
    name: 'a settle whose buckets another has taken changes nothing, and leaves that lease alone',
    async body({ store, another, inspect }) {
      const row = outboxRow();
      await store.add([row]);
      const { old, read } = await until('a lease is held until it reads', async () => {
        const old = await leaseAll(store, LANE, SHORT_MS);
        const read = old ? await readAll(store, old) : [];
        return old && read.length === 1 ? { old, read } : undefined;
      });
      const lease = await until('the lease runs out', () => leaseAll(another));
      const late = await store.settle(old, outcome({ published: read }), KEEP);
      assert.deepEqual([late.settled, late.lost, late.buckets], [[], [row.id], []]);
      const retried = only(await readAll(another, lease));
      await another.settle(lease, failure(retried, 3600), KEEP);
      const failed = await store.settle(old, failure(only(read), 0), KEEP);
      assert.deepEqual(failed.lost, [row.id]);
      assert.equal((await inspect(row.id))?.retryCount, 1);
    },
  },
  {
    promise: 5,
    name: 'a discard of a message on the wire is not undone by the settle',
    async body({ store, discard, inspect }) {
      const rows = [outboxRow(), outboxRow(), outboxRow(), outboxRow()];
      await store.add(rows);
      const lease = await mustLease(store);
      const read = await readAll(store, lease);
      const by = (n: number) => only(read.filter(({ id }) => id === rows[n]?.id));
      for (const row of rows.slice(0, 3)) await discard(row.id);
      const result = await store.settle(
        lease,
        {
          published: [by(0), by(3)],
          failed: [{ message: by(1), reason: 'x', retryInSeconds: 0 }],
          rejected: [{ message: by(2), reason: 'x' }],
        },
        { ...KEEP, afterSuccess: 'delete' },
      );
      assert.deepEqual(result.settled, [rows[3]?.id]);
      assert.deepEqual(sorted(result.lost), sorted(ids(rows.slice(0, 3))));
      for (const row of rows.slice(0, 3)) assert.equal((await inspect(row.id))?.state, 4);
    },
  },
  {
    promise: 7,
    name: 'a failure counts one retry, waits its time, and comes back with its count',
    async body({ store, inspect }) {
      const [row, other] = [outboxRow(), outboxRow()];
      await store.add([row, other]);
      const lease = await mustLease(store);
      const read = await readAll(store, lease);
      const message = only(read.filter(({ id }) => id === row.id));
      const result = await store.settle(lease, failure(message, 0.4, 'the broker said no'), KEEP);
      assert.deepEqual([result.settled, result.ended], [[row.id], []]);
      const waiting = await inspect(row.id);
      assert.equal(waiting?.state, 0);
      assert.equal(waiting.retryCount, 1);
      assert.equal(waiting.lastError, 'the broker said no');
      assert.equal(waiting.ended, false);
      assert.ok(
        waiting.waitsSeconds !== null && waiting.waitsSeconds <= 0.4,
        'seconds, from the database’s now',
      );
      const at = performance.now();
      const back = await until('the message comes back', async () =>
        (await readAll(store, lease)).find(({ id }) => id === row.id),
      );
      assert.ok(waiting.waitsSeconds * 1000 <= performance.now() - at + 100, 'it waited its time');
      assert.equal(back.retryCount, 1);
    },
  },
  {
    promise: 7,
    name: 'a message that waits a long time is not read meanwhile',
    async body({ store, inspect }) {
      await store.add([outboxRow(), outboxRow()]);
      const lease = await mustLease(store);
      const [first, second] = await readAll(store, lease);
      assert.ok(first && second);
      await store.settle(lease, failure(first, 3600), KEEP);
      assert.deepEqual(ids(await readAll(store, lease)), [second.id]);
      const waits = (await inspect(first.id))?.waitsSeconds ?? 0;
      assert.ok(waits > 3500 && waits <= 3600, `waits ${waits} s`);
    },
  },
];
