import assert from 'node:assert/strict';
import { type CaseOf, until } from '../case.ts';
import {
  failure,
  ids,
  KEEP,
  mustLease,
  type OutboxHarness,
  only,
  outboxRow,
  outcome,
  readAll,
  sorted,
} from './harness.ts';

/** How messages end that were not published, and what is told of those that wait. */
export const ending: readonly CaseOf<OutboxHarness>[] = [
  {
    promise: 7,
    name: 'retries used up end in Failed: max_retries retries after the first attempt, and no more',
    async body({ store, inspect }) {
      const [row, once] = [outboxRow({ maxRetries: 2 }), outboxRow({ maxRetries: 0 })];
      await store.add([row, once]);
      const lease = await mustLease(store);
      const ended: string[] = [];
      for (let attempt = 1; attempt <= 3; attempt++) {
        const read = await until('the message is due', async () => {
          const read = await readAll(store, lease);
          return read.some(({ id }) => id === row.id) && read;
        });
        const failed = read.map((message) => ({ message, reason: `attempt ${attempt}`, retryInSeconds: 0 }));
        ended.push(...(await store.settle(lease, outcome({ failed }), KEEP)).ended);
        if (attempt === 1) assert.deepEqual(ended, [once.id]);
        assert.equal((await inspect(row.id))?.state, attempt < 3 ? 0 : 3);
      }
      assert.deepEqual(ended, [once.id, row.id]);
      const end = await inspect(row.id);
      assert.equal(end?.lastError, 'attempt 3');
      assert.equal(end.ended, true);
      assert.deepEqual(await readAll(store, lease), []);
      await store.release(lease);
      assert.deepEqual(await store.dueLanes(), []);
    },
  },
  {
    promise: 7,
    name: 'a rejected message is Failed at once, with its reason, and costs only itself',
    async body({ store, inspect }) {
      const [bad, good] = [outboxRow(), outboxRow()];
      await store.add([bad, good]);
      const lease = await mustLease(store);
      const read = await readAll(store, lease);
      const by = (id: string) => only(read.filter((message) => message.id === id));
      const result = await store.settle(
        lease,
        { published: [by(good.id)], failed: [], rejected: [{ message: by(bad.id), reason: 'too large' }] },
        KEEP,
      );
      assert.deepEqual(sorted(result.settled), sorted([bad.id, good.id]));
      assert.deepEqual(result.ended, [bad.id]);
      const failed = await inspect(bad.id);
      assert.equal(failed?.state, 3);
      assert.equal(failed.lastError, 'too large');
      assert.equal((await inspect(good.id))?.state, 2);
    },
  },
  {
    promise: 7,
    name: 'a message without an outcome stays as it is, due',
    async body({ store, inspect }) {
      const row = outboxRow();
      await store.add([row]);
      const before = await inspect(row.id);
      const lease = await mustLease(store);
      await readAll(store, lease);
      await store.settle(lease, outcome({}), KEEP);
      await store.release(lease);
      assert.deepEqual(await inspect(row.id), before);
      assert.deepEqual(ids(await readAll(store, await mustLease(store))), [row.id]);
    },
  },
  {
    promise: 7,
    name: 'a reason that the database could not carry is still recorded',
    async body({ store, inspect }) {
      const rows = [outboxRow(), outboxRow()];
      await store.add(rows);
      const lease = await mustLease(store);
      const [failed, rejected] = await readAll(store, lease);
      assert.ok(failed && rejected);
      const reason = `before \u0000 and \ud800 after ${'x'.repeat(20_000)}`;
      const result = await store.settle(
        lease,
        {
          published: [],
          failed: [{ message: failed, reason, retryInSeconds: 3600 }],
          rejected: [{ message: rejected, reason }],
        },
        KEEP,
      );
      assert.equal(result.settled.length, 2);
      for (const { id } of rows) {
        const text = (await inspect(id))?.lastError ?? '';
        assert.match(text, /^before .* and .* after x/su);
        assert.ok(
          !text.includes('\u0000') && text.isWellFormed() && text.length <= 4000,
          'sanitised and cut',
        );
      }
    },
  },
  {
    promise: 7,
    name: 'a requeued message is due again, with all its retries before it',
    async body({ store, requeue, inspect }) {
      const row = outboxRow({ maxRetries: 0 });
      await store.add([row]);
      const lease = await mustLease(store);
      await store.settle(lease, failure(only(await readAll(store, lease)), 0), KEEP);
      assert.equal((await inspect(row.id))?.state, 3);
      await store.release(lease);
      await requeue(row.id);
      const again = await mustLease(store);
      const message = only(await readAll(store, again));
      assert.equal(message.retryCount, 0);
      await store.settle(again, outcome({ published: [message] }), KEEP);
      assert.equal((await inspect(row.id))?.state, 2);
    },
  },
  {
    promise: 7,
    name: 'the next due time is told, of waiting messages and of other programs’ claims',
    async body({ store, insertForeignRow }) {
      assert.equal(await store.secondsToNextDue(), undefined);
      await store.add([outboxRow({ delaySeconds: 500 })]);
      const far = await store.secondsToNextDue();
      assert.ok(far !== undefined && far > 450 && far <= 500, `in ${far} s`);
      await insertForeignRow({
        id: outboxRow().id,
        destination: 'legacy',
        messageType: 't',
        payload: '{}',
        maxRetries: 5,
        state: 1,
        lockedForMs: 100_000,
      });
      const foreign = await store.secondsToNextDue();
      assert.ok(foreign !== undefined && foreign > 60 && foreign <= 100, `in ${foreign} s`);
      await store.add([outboxRow({ delaySeconds: 20, destination: 'other' })]);
      const near = await store.secondsToNextDue();
      assert.ok(near !== undefined && near > 0 && near <= 20, `in ${near} s`);
    },
  },
];
