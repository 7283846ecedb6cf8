import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SHORT_MS, sleep, until } from '../../shared/testing/case.ts';
import type { OutboxHarness } from '../../shared/testing/outbox/harness.ts';
import {
  failure,
  ids,
  KEEP,
  keyed,
  leaseAll,
  mustLease,
  only,
  outboxRow,
  outcome,
  readAll,
} from '../../shared/testing/outbox/harness.ts';
import { engine } from '../support/engine/engine.ts';
import { keysByBucket, outboxHarnessOn } from '../support/engine/outbox-harness.ts';

const db = await engine.createDatabase();
const createHarness = outboxHarnessOn(db);
let harness: OutboxHarness;

beforeEach(async () => {
  harness = await createHarness();
});
afterEach(() => harness.close());
afterAll(() => db.drop());

const heldCount = (): Promise<number> => db.count('outbox', { held: true });

describe('promise 6: followers are held and let go', () => {
  it('in bounded numbers, lowest first; the rest stays held and holds what is added behind it', async () => {
    const { store, inspect } = harness;
    const rows = keyed('k', 600);
    await store.add(rows);
    const lease = await mustLease(store);
    const [head] = await readAll(store, lease, { limit: 1 });
    if (head) await store.settle(lease, failure(head, 0), KEEP);
    const again = only(await readAll(store, lease));
    expect(again.id).toBe(rows[0]?.id);
    expect(await heldCount()).toBe(599);

    const { freed } = await store.settle(lease, outcome({ published: [again] }), KEEP);
    expect(freed).toEqual([again.bucket]);
    expect(await heldCount()).toBeGreaterThan(400);
    const late = outboxRow({ partitionKey: 'k' });
    await store.add([late]);

    const order: string[] = [again.id];
    while (order.length < 601) {
      const published = await readAll(store, lease, { limit: 100 });
      expect(published.length).toBeGreaterThan(0);
      order.push(...ids(published));
      if (order.length < 300) expect((await inspect(late.id))?.held).toBe(true);
      await store.settle(lease, outcome({ published }), KEEP);
    }
    expect(order).toEqual([...ids(rows), late.id]);
    expect(await heldCount()).toBe(0);
  });

  it('up to the next one that waits for a retry, and no further', async () => {
    const { store } = harness;
    const rows = keyed('k', 6);
    await store.add(rows);
    const lease = await mustLease(store);
    const [first, , third] = await readAll(store, lease);
    if (!first || !third) throw new Error('three messages were to be read');
    await store.settle(lease, failure(third, 3600), KEEP);
    await store.settle(lease, failure(first, 0), KEEP);
    const head = only(await readAll(store, lease));
    await store.settle(lease, outcome({ published: [head] }), KEEP);
    const second = only(await readAll(store, lease));
    expect(second.id).toBe(rows[1]?.id);
    await store.settle(lease, outcome({ published: [second] }), KEEP);
    expect(await readAll(store, lease)).toEqual([]);
    expect(await heldCount()).toBe(3);
  });

  it('only those of the blocked key: others of its bucket go on, also where a read meets nothing but followers', async () => {
    const { store } = harness;
    const rows = keyed('k', 50);
    await store.add(rows);
    const lease = await mustLease(store);
    const [head] = await readAll(store, lease, { limit: 1 });
    if (head) await store.settle(lease, failure(head, 3600), KEEP);
    const places = await store.bucketsOf(ids(rows.slice(0, 1)));
    const [same] = (await keysByBucket(db, 'free-', 500)).get(places[0]?.bucket ?? -1) ?? [];
    await store.add([outboxRow({ partitionKey: same ?? '' })]);
    const found = await readAll(store, lease, { limit: 5 });
    expect(found.map(({ partitionKey }) => partitionKey)).toEqual([same]);
  });

  it('a requeued head under `skip` goes before the follower that is next, and is in one hand with it', async () => {
    const { store, another, requeue } = harness;
    const rows = keyed('k', 3);
    await store.add(rows);
    const lease = await mustLease(store);
    const [head] = await readAll(store, lease);
    if (head) {
      const rejected = [{ message: head, reason: 'x' }];
      await store.settle(lease, outcome({ rejected }), { ...KEEP, onFailedKey: 'skip' });
    }
    expect(ids(await readAll(store, lease))).toEqual(ids(rows.slice(1)));
    await requeue(rows[0]?.id ?? '');
    expect(await leaseAll(another)).toBeUndefined();
    expect(ids(await readAll(store, lease))).toEqual(ids(rows));
  });
});

describe('promise 5: setting followers held is fenced', () => {
  it('a reader that lost its lease holds nothing any more', async () => {
    const { store, another, requeue } = harness;
    const rows = keyed('k', 3);
    await store.add(rows);
    const first = await mustLease(store);
    const [head] = await readAll(store, first);
    if (head) await store.settle(first, outcome({ rejected: [{ message: head, reason: 'x' }] }), KEEP);
    await store.release(first);
    const old = await mustLease(store, 'orders', SHORT_MS);
    await sleep(SHORT_MS + 50);
    const lease = await until('the lease runs out', () => leaseAll(another));
    expect(await readAll(store, old)).toEqual([]);
    expect(await heldCount()).toBe(1);
    // The new holder's person requeues: nothing of the old reader's must be left behind.
    await requeue(head?.id ?? '');
    expect(ids(await readAll(another, lease))).toEqual(ids(rows));
  });

  it('a follower that is being held while the row before it is settled is not left behind', async () => {
    const { store } = harness;
    const rows = keyed('k', 3);
    await store.add(rows.slice(0, 1));
    const lease = await mustLease(store);
    const [head] = await readAll(store, lease);
    if (head) await store.settle(lease, failure(head, 0), KEEP);
    const again = only(await readAll(store, lease));
    await store.add(rows.slice(1));
    // Whoever locks the lease's row makes both statements meet in the database: the one that holds, then the settle.
    const blocker = await db.hold('leases');
    const reading = readAll(store, lease, { except: [again.id] });
    await sleep(150);
    const settling = store.settle(lease, outcome({ published: [again] }), KEEP);
    await sleep(150);
    await blocker.release();
    await Promise.all([reading, settling]);
    expect(ids(await readAll(store, lease))).toEqual(ids(rows.slice(1)));
    expect(await heldCount()).toBe(0);
  });
});
