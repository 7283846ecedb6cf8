import assert from 'node:assert/strict';
import type { OutboxStore, Probe } from '../../store/outbox-store.ts';
import { type CaseOf, LONG_MS, SHORT_MS, until } from '../case.ts';
import { ids, KEEP, LANE, mustLease, type OutboxHarness, outboxRow, outcome, readAll } from './harness.ts';

const open = { destination: LANE, reason: 'the queue is away', pauseSeconds: 3600, tried: [] };

/** The breaker and a person's pause: properties of a lane, never of its messages. */
export const lanes: readonly CaseOf<OutboxHarness>[] = [
  {
    promise: 3,
    name: 'an open lane is not due, its messages are not touched, and other lanes go on',
    async body({ store, another, inspect }) {
      const row = outboxRow({ maxRetries: 1 });
      await store.add([row, outboxRow({ destination: 'events' })]);
      const before = await inspect(row.id);
      await store.openLane(open);
      assert.deepEqual(await another.dueLanes(), [{ destination: 'events', state: 'ready' }]);
      assert.equal(await another.takeProbe({ destination: LANE, leaseMs: LONG_MS }), undefined, 'not yet');
      assert.deepEqual(await inspect(row.id), before, 'no write, no retry used up');
    },
  },
  {
    promise: 3,
    name: 'the probe of an open lane is one worker’s',
    async body({ store, another }) {
      await store.add([outboxRow()]);
      await store.openLane({ ...open, pauseSeconds: 0.05 });
      await until('the pause is over', async () => (await store.dueLanes())[0]?.state === 'probe');
      const probes = await Promise.all(
        [store, another, store, another].map((worker) =>
          worker.takeProbe({ destination: LANE, leaseMs: LONG_MS }),
        ),
      );
      const won = probes.filter((probe) => probe !== undefined);
      assert.equal(won.length, 1, 'one, and only one, wins it');
      assert.equal(won[0]?.destination, LANE);
      assert.equal(won[0].failures, 1);
      assert.ok(
        (await another.dueLanes()).every(({ state }) => state !== 'ready'),
        'the lane is not ready while it is probed',
      );
    },
  },
  {
    promise: 3,
    name: 'a probe that passes closes the lane',
    async body({ store, another }) {
      const row = outboxRow();
      await store.add([row]);
      const probe = await openAndProbe(store);
      assert.equal(await store.probePassed(probe), true);
      assert.deepEqual(await another.dueLanes(), [{ destination: LANE, state: 'ready' }]);
      const lease = await mustLease(another);
      assert.deepEqual(ids(await readAll(another, lease)), [row.id]);
      assert.equal(await store.probePassed(probe), false, 'a probe passes once');
    },
  },
  {
    promise: 3,
    name: 'a probe that fails keeps the lane open, and the next knows its failures and what was tried',
    async body({ store, another }) {
      const rows = [outboxRow(), outboxRow(), outboxRow()];
      await store.add(rows);
      const [first, second, third] = ids(rows);
      assert.ok(first && second && third);
      const one = await openAndProbe(store, [first]);
      assert.deepEqual(one.tried, [first]);
      assert.equal(
        await store.probeFailed(one, { reason: 'still away', pauseSeconds: 0.05, tried: [second] }),
        true,
      );
      const two = await probeOf(another);
      assert.equal(two.failures, 2);
      assert.deepEqual([...two.tried].sort(), [first, second].sort());
      await another.probeFailed(two, { reason: 'still away', pauseSeconds: 3600, tried: [third] });
      assert.deepEqual(await store.dueLanes(), []);
    },
  },
  {
    promise: 3,
    name: 'a lane that opens anew after it closed starts to count anew',
    async body({ store }) {
      const row = outboxRow();
      await store.add([row]);
      const one = await openAndProbe(store, [row.id]);
      await store.probeFailed(one, { reason: 'away', pauseSeconds: 0.01, tried: [row.id] });
      await store.probePassed(await probeOf(store));
      const again = await openAndProbe(store);
      assert.equal(again.failures, 1);
      assert.deepEqual(again.tried, []);
    },
  },
  {
    promise: 3,
    name: 'opening a lane that is open already changes neither its pause nor its count',
    async body({ store, another }) {
      await store.add([outboxRow()]);
      await Promise.all([
        store.openLane({ ...open, pauseSeconds: 0.2 }),
        another.openLane({ ...open, pauseSeconds: 0.2 }),
      ]);
      await another.openLane(open);
      const probe = await probeOf(store);
      assert.equal(probe.failures, 1);
    },
  },
  {
    promise: 5,
    name: 'a probe whose lease has run out goes to another, and can change nothing any more',
    async body({ store, another }) {
      await store.add([outboxRow()]);
      await store.openLane({ ...open, pauseSeconds: 0.01 });
      const old = await probeOf(store, SHORT_MS);
      const probe = await probeOf(another);
      assert.notEqual(probe.token, old.token);
      assert.equal(await store.probePassed(old), false);
      assert.equal(await store.probeFailed(old, { reason: 'x', pauseSeconds: 9999, tried: [] }), false);
      assert.equal(await another.probePassed(probe), true);
      assert.equal((await store.dueLanes())[0]?.state, 'ready');
    },
  },
  {
    promise: 3,
    name: 'a probe given back untried counts no failure, and is the next one’s at once',
    async body({ store, another }) {
      await store.add([outboxRow()]);
      const given = await openAndProbe(store);
      await store.probeAbandoned(given);
      const probe = await another.takeProbe({ destination: LANE, leaseMs: LONG_MS });
      assert.equal(probe?.failures, 1);
      await store.probeAbandoned(given);
      assert.equal(await another.probePassed(probe), true, 'only its holder gives a probe back');
    },
  },
  {
    promise: 3,
    name: 'an open lane is read by its probe alone',
    async body({ store }) {
      const row = outboxRow();
      await store.add([row]);
      const [place] = await store.bucketsOf([row.id]);
      assert.ok(place);
      const probe = await openAndProbe(store);
      const lease = await store.lease({
        destination: LANE,
        limit: 1,
        leaseMs: LONG_MS,
        buckets: [place.bucket],
      });
      assert.ok(lease);
      assert.deepEqual(await readAll(store, lease), [], 'a lane that opened is read no further');
      assert.deepEqual(
        await readAll(store, lease, { probe: { ...probe, token: lease.token } }),
        [],
        'nor by a probe that is none',
      );
      const published = await readAll(store, lease, { limit: 1, probe });
      assert.deepEqual(ids(published), [row.id]);
      const result = await store.settle(lease, outcome({ published }), KEEP);
      assert.deepEqual(result.settled, [row.id]);
    },
  },
  {
    promise: 3,
    name: 'the end of an open lane’s pause is a next due time',
    async body({ store }) {
      await store.add([outboxRow()]);
      await store.openLane({ ...open, pauseSeconds: 200 });
      const seconds = await store.secondsToNextDue();
      assert.ok(seconds !== undefined && seconds > 150 && seconds <= 200, `in ${seconds} s`);
    },
  },
  {
    promise: 7,
    name: 'a lane that a person paused is not due, whatever the breaker says, until it is resumed',
    async body({ store, another, pause, resume, inspect }) {
      const row = outboxRow();
      await store.add([row]);
      const before = await inspect(row.id);
      await store.openLane({ ...open, pauseSeconds: 0.01 });
      const probe = await probeOf(store);
      await pause(LANE);
      await store.probePassed(probe);
      assert.deepEqual(await another.dueLanes(), [], 'a success on the wire does not undo a pause');
      assert.deepEqual(await inspect(row.id), before);
      await resume(LANE);
      assert.deepEqual(await another.dueLanes(), [{ destination: LANE, state: 'ready' }]);
    },
  },
  {
    promise: 7,
    name: 'a pause that comes while a batch is on the wire lets its outcome be written, and nothing more be read',
    async body({ store, pause, inspect }) {
      const rows = [outboxRow(), outboxRow()];
      await store.add(rows);
      const lease = await mustLease(store);
      const published = (await readAll(store, lease)).slice(0, 1);
      await pause(LANE);
      const result = await store.settle(lease, outcome({ published }), KEEP);
      assert.equal(result.settled.length, 1, 'what was sent was sent');
      assert.equal((await inspect(published[0]?.id ?? ''))?.state, 2);
      assert.deepEqual(await readAll(store, lease), []);
      await store.release(lease);
      assert.deepEqual(await store.dueLanes(), []);
    },
  },
];

async function probeOf(store: OutboxStore, leaseMs = LONG_MS): Promise<Probe> {
  return await until('the probe can be taken', () => store.takeProbe({ destination: LANE, leaseMs }));
}

async function openAndProbe(store: OutboxStore, tried: readonly string[] = []): Promise<Probe> {
  await store.openLane({ ...open, pauseSeconds: 0.02, tried });
  return await probeOf(store);
}
