import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../shared/testing/case.ts';
import type { OutboxHarness } from '../../shared/testing/outbox/harness.ts';
import {
  failure,
  KEEP,
  keyed,
  LANE,
  mustLease,
  outboxRow,
  readAll,
} from '../../shared/testing/outbox/harness.ts';
import { engine } from '../support/engine/engine.ts';
import type { Row } from '../support/engine/gateway.ts';
import { outboxHarnessOn } from '../support/engine/outbox-harness.ts';
import { secondsFromNow } from '../support/engine/values.ts';

const db = await engine.createDatabase();
const createHarness = outboxHarnessOn(db);
let harness: OutboxHarness;

beforeEach(async () => {
  harness = await createHarness();
});
afterEach(() => harness.close());
afterAll(() => db.drop());

const open = { destination: LANE, reason: 'away', pauseSeconds: 0.01, tried: [] };

function probe() {
  return until('the probe', () => harness.store.takeProbe({ destination: LANE, leaseMs: 20_000 }));
}

async function lane(): Promise<Row<'lanes'>> {
  const [row] = await db.rows('lanes', { destination: LANE });
  if (row === undefined) throw new Error('the lane has no row');
  return row;
}

describe('promise 3: the breaker', () => {
  it('is opened once by many relays that fail at the same moment', async () => {
    const { store, another } = harness;
    await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        (n % 2 ? store : another).openLane({ ...open, pauseSeconds: 60, reason: `relay ${n}` }),
      ),
    );
    expect((await lane()).failures).toBe(1);
  });

  it('gives its probe to exactly one of many', async () => {
    const { store, another } = harness;
    for (let round = 0; round < 5; round++) {
      await store.openLane(open);
      await until('the pause is over', async () => {
        const probes = await Promise.all(
          Array.from({ length: 10 }, (_, n) =>
            (n % 2 ? store : another).takeProbe({ destination: LANE, leaseMs: 20_000 }),
          ),
        );
        const won = probes.filter((each) => each !== undefined);
        expect(won.length).toBeLessThanOrEqual(1);
        return won[0] && (await store.probePassed(won[0]));
      });
    }
  });

  it('remembers the newest 32 of what was tried, each once', async () => {
    const { store } = harness;
    const tried = Array.from({ length: 40 }, () => randomUUID());
    await store.openLane({ ...open, tried: tried.slice(0, 1) });
    for (let n = 1; n < 40; n += 3) {
      await store.probeFailed(await probe(), {
        reason: 'x',
        pauseSeconds: 0,
        tried: tried.slice(n - 1, n + 3),
      });
    }
    const last = await probe();
    expect(last.tried).toEqual(tried.slice(-32));
    expect(last.failures).toBe(14);
  });

  it('touches no column of a person’s pause, and a person’s pause does not touch the breaker’s', async () => {
    const { store, pause, resume } = harness;
    await pause(LANE);
    const paused = await lane();
    const persons = ['paused_at_utc', 'paused_until_utc', 'paused_by', 'paused_reason'] as const;
    await store.openLane(open);
    await resume(LANE);
    const held = await probe();
    await pause(LANE);
    await store.probeFailed(held, { reason: 'x', pauseSeconds: 0, tried: [] });
    expect(await store.takeProbe({ destination: LANE, leaseMs: 1000 })).toBeUndefined();
    const after = await lane();
    for (const column of persons) {
      if (column !== 'paused_at_utc') expect(after[column]).toEqual(paused[column]);
    }
    expect(after.paused_at_utc).not.toBeNull();
    expect(after.failures).toBe(2);
  });

  it('an open lane is read in the name of the probe that runs, and of no other', async () => {
    const { store } = harness;
    await store.add([outboxRow()]);
    const lease = await mustLease(store);
    await store.openLane(open);
    const mine = await probe();
    expect(await readAll(store, lease)).toEqual([]);
    expect(await readAll(store, lease, { probe: { ...mine, token: randomUUID() } })).toEqual([]);
    expect(await readAll(store, lease, { probe: mine })).toHaveLength(1);
    const [row] = await db.rows('outbox', {}, { columns: ['id'] });
    expect(await readAll(store, lease, { probe: mine, only: [String(row?.id)] })).toHaveLength(1);
    await db.update('lanes', { probe_until_utc: secondsFromNow(-1) });
    expect(await readAll(store, lease, { probe: mine })).toEqual([]);
  });
});

describe('promise 7: the list of due lanes', () => {
  it('has no lane whose rows wait, are held, are Failed, are done, or are in another program’s hands', async () => {
    const { store, insertForeignRow } = harness;
    await store.add([outboxRow({ destination: 'waiting', delaySeconds: 3600 })]);
    await store.add(keyed('k', 3, { destination: 'held' }));
    const lease = await mustLease(store, 'held');
    const [head] = await readAll(store, lease);
    if (head)
      await store.settle(
        lease,
        { published: [], failed: [], rejected: [{ message: head, reason: 'x' }] },
        KEEP,
      );
    await readAll(store, lease);
    await store.release(lease);
    const foreign = { destination: 'foreign', messageType: 't', payload: '{}', maxRetries: 5 };
    await insertForeignRow({ ...foreign, id: randomUUID(), state: 1, lockedForMs: 60_000 });
    expect(await store.dueLanes()).toEqual([]);
    await store.add([outboxRow({ destination: 'due' }), outboxRow({ destination: 'a' })]);
    expect((await store.dueLanes()).map(({ destination }) => destination)).toEqual(['a', 'due']);
  });

  it('has a lane again whose waiting row has come, or whose pause ran out', async () => {
    const { store, pause } = harness;
    await store.add([outboxRow({ delaySeconds: 0.05 })]);
    await until('the row has come', async () => (await store.dueLanes()).length === 1);
    await pause(LANE);
    expect(await store.dueLanes()).toEqual([]);
    await db.update('lanes', { paused_until_utc: secondsFromNow(-1) });
    expect(await store.dueLanes()).toEqual([{ destination: LANE, state: 'ready' }]);
  });
});

describe('the next due time', () => {
  it('is the end of another relay’s lease where due rows are in it', async () => {
    const { store } = harness;
    const lease = await store.lease({ destination: LANE, limit: 64, leaseMs: 90_000, buckets: [1, 2] });
    expect(lease).toBeDefined();
    expect(await store.secondsToNextDue()).toBeUndefined();
    await store.add(Array.from({ length: 300 }, () => outboxRow()));
    const seconds = await store.secondsToNextDue();
    expect(seconds).toBeGreaterThan(60);
    expect(seconds).toBeLessThanOrEqual(90);
  });

  it('is never while a person has paused the lane without an end, and the pause’s end where it has one', async () => {
    const { store, pause } = harness;
    await store.add([outboxRow(), outboxRow({ delaySeconds: 5 })]);
    await pause(LANE);
    expect(await store.secondsToNextDue()).toBeUndefined();
    await db.update('lanes', { paused_until_utc: secondsFromNow(70) });
    const seconds = await store.secondsToNextDue();
    expect(seconds).toBeGreaterThan(60);
    expect(seconds).toBeLessThanOrEqual(70);
  });

  it('is the retry’s, not that of what is held behind it', async () => {
    const { store } = harness;
    await store.add(keyed('k', 3));
    const lease = await mustLease(store);
    const [head] = await readAll(store, lease);
    if (head) await store.settle(lease, failure(head, 40), KEEP);
    await readAll(store, lease);
    await store.release(lease);
    const seconds = await store.secondsToNextDue();
    expect(seconds).toBeGreaterThan(30);
    expect(seconds).toBeLessThanOrEqual(40);
  });
});
