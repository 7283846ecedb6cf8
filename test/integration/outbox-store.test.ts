import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { OutboxHarness } from '../../shared/testing/outbox/harness.ts';
import {
  failure,
  ids,
  KEEP,
  keyed,
  LANE,
  mustLease,
  only,
  outboxRow,
  outcome,
  readAll,
} from '../../shared/testing/outbox/harness.ts';
import { engine } from '../support/engine/engine.ts';
import type { Columns } from '../support/engine/gateway.ts';
import { outboxHarnessOn } from '../support/engine/outbox-harness.ts';
import { tableColumns } from '../support/engine/tables.ts';
import { secondsFromNow } from '../support/engine/values.ts';

const MANY = 8 * 1024 * 1024;

const db = await engine.createDatabase({ timezone: 'America/St_Johns' });
const createHarness = outboxHarnessOn(db);
let harness: OutboxHarness;

beforeEach(async () => {
  harness = await createHarness();
});
afterEach(() => harness.close());
afterAll(() => db.drop());

/** As another program inserts, whose clock is ahead. */
async function insert(columns: Columns<'outbox'>): Promise<void> {
  await db.insert('outbox', {
    destination: LANE,
    message_type: 't',
    created_at_utc: secondsFromNow(300),
    ...columns,
  });
}

describe('promise 5: leases run by the database’s clock', () => {
  it('a relay whose own clock is an hour off keeps its lease, and takes nobody’s', async () => {
    const { store, another } = harness;
    await store.add([outboxRow(), outboxRow()]);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 });
    try {
      const lease = await mustLease(store, LANE, 20_000);
      const read = await readAll(store, lease);
      expect((await store.settle(lease, failure(read[0] ?? only(read), 0.5), KEEP)).lost).toEqual([]);
      vi.setSystemTime(Date.now() - 7_200_000);
      expect(await another.lease({ destination: LANE, limit: 64, leaseMs: 1000 })).toBeUndefined();
      const second = await store.settle(lease, outcome({ published: read.slice(1) }), KEEP);
      expect(second.settled).toEqual(ids(read.slice(1)));
      const wait = await store.secondsToNextDue();
      expect(wait).toBeGreaterThan(0);
      expect(wait).toBeLessThanOrEqual(61);
    } finally {
      vi.useRealTimers();
    }
  });

  it('a bucket of a new lane is leased although it has no lease row yet, by two relays at once', async () => {
    const { store, another } = harness;
    await store.add([outboxRow()]);
    const [place] = await store.bucketsOf([...(await allIds())]);
    const leases = await Promise.all(
      [store, another].map((worker) =>
        worker.lease({ destination: LANE, limit: 1, leaseMs: 20_000, buckets: [place?.bucket ?? 0] }),
      ),
    );
    expect(leases.filter((lease) => lease !== undefined)).toHaveLength(1);
  });

  it('relays that come and go take the buckets in turn: none is left to wait', async () => {
    const { store } = harness;
    await store.add(Array.from({ length: 400 }, () => outboxRow()));
    const seen = new Set<number>();
    for (let turn = 0; turn < 4; turn++) {
      const lease = await store.lease({ destination: LANE, limit: 16, leaseMs: 20_000 });
      for (const bucket of lease?.buckets ?? []) seen.add(bucket);
      if (lease) await store.release(lease);
    }
    expect(seen.size).toBeGreaterThanOrEqual(60);
  });
});

describe('rows that other programs wrote are relayed as they are', () => {
  it('a row with an explicit NULL as sequence is read, after the numbered ones', async () => {
    const { store } = harness;
    const numbered = keyed('k', 2);
    await insert({ partition_key: 'k', sequence: null, message_type: 'unnumbered' });
    await store.add(numbered);
    const lease = await mustLease(store);
    const read = await readAll(store, lease);
    expect(read.map(({ messageType }) => messageType)).toEqual([
      'order.placed',
      'order.placed',
      'unnumbered',
    ]);
    await store.settle(lease, outcome({ published: read }), KEEP);
    expect(await readAll(store, lease)).toEqual([]);
  });

  it('a key of rows without sequence keeps one order: the first that fails holds the others', async () => {
    const { store } = harness;
    for (let n = 0; n < 3; n++) await insert({ partition_key: 'k', sequence: null });
    const lease = await mustLease(store);
    const [first, ...others] = await readAll(store, lease);
    expect(others).toHaveLength(2);
    if (first) await store.settle(lease, failure(first, 0), KEEP);
    expect(ids(await readAll(store, lease))).toEqual([first?.id]);
  });

  it('a row left in Processing without a lock is due, and one whose lock runs is in nobody’s way', async () => {
    const { store } = harness;
    await insert({ state: 1, message_type: 'abandoned' });
    await insert({ state: 1, locked_until_utc: secondsFromNow(3600) });
    await insert({});
    const read = await readAll(store, await mustLease(store));
    expect(read.map(({ messageType }) => messageType).sort()).toEqual(['abandoned', 't']);
  });

  it('headers of any shape come as text, long numbers with all their digits', async () => {
    const { store } = harness;
    await insert({
      headers: '{"id": 12345678901234567890, "n": 1.50, "o": {"a": [1]}, "b": true, "none": null, "s": "x"}',
    });
    await insert({ headers: '["no", "names"]' });
    await insert({ headers: '"text"' });
    const headers = (await readAll(store, await mustLease(store))).map((message) => message.headers);
    expect(headers).toContainEqual({
      id: '12345678901234567890',
      n: '1.50',
      o: '{"a": [1]}',
      b: 'true',
      s: 'x',
    });
    expect(headers.filter((each) => Object.keys(each).length === 0)).toHaveLength(2);
  });

  it('a requeued message tells how often, and does not send that header on', async () => {
    const { store } = harness;
    await store.add([outboxRow({ headers: { tenant: 'a', 'relaybox-replay': '3' } })]);
    const message = only(await readAll(store, await mustLease(store)));
    expect(message.replay).toBe(3);
    expect(message.headers).toEqual({ tenant: 'a' });
  });
});

describe('promise 7: a read is fair, bounded and cheap to ask for', () => {
  it('is one statement, and so is the settle of a batch that was published', async () => {
    const statements: string[] = [];
    const counting = db.watchedOutbox((text) => statements.push(text));
    await counting.add([...keyed('k', 5), outboxRow(), outboxRow()]);
    const lease = await mustLease(counting);
    statements.length = 0;
    const read = await readAll(counting, lease);
    expect(statements).toHaveLength(1);
    await counting.settle(lease, outcome({ published: read.slice(1) }), KEEP);
    expect(statements).toHaveLength(2);
    await counting.settle(lease, failure(read[0] ?? only(read), 1), KEEP);
    expect(statements).toHaveLength(3);
  });

  it('a single full bucket among many fills whole batches once the others have proved empty', async () => {
    const { store } = harness;
    await store.add([...keyed('full', 300), ...Array.from({ length: 100 }, () => outboxRow())]);
    const lease = await mustLease(store);
    const except: string[] = [];
    const sizes: number[] = [];
    for (let n = 0; n < 4; n++) {
      const { messages } = await store.read(lease, { limit: 100, maxBytes: MANY, except });
      except.push(...messages.map(({ id }) => id));
      sizes.push(messages.length);
    }
    expect(sizes[3]).toBe(100);
  });

  it.each(['keep', 'delete', 'archive'] as const)(
    'a message whose row somebody touched since it was read is settled like its neighbours (%s)',
    async (afterSuccess) => {
      const { store } = harness;
      await store.add([...keyed('k', 3), ...Array.from({ length: 3 }, () => outboxRow())]);
      const lease = await mustLease(store);
      const published = await readAll(store, lease);
      expect(published).toHaveLength(6);
      await db.touch('outbox', { id: published.slice(0, 5).map(({ id }) => id) });
      const result = await store.settle(lease, outcome({ published }), { ...KEEP, afterSuccess });
      expect(result.settled.toSorted()).toEqual(published.map(({ id }) => id).toSorted());
      expect([result.lost, result.buckets.length]).toEqual([[], lease.buckets.length]);
      expect(await db.count('outbox', { state: 2 })).toBe(afterSuccess === 'keep' ? 6 : 0);
      expect(await db.count('archive')).toBe(afterSuccess === 'archive' ? 6 : 0);
    },
  );

  it('what has waited longest comes first, whatever its bucket: buckets stay abreast, and none starves', async () => {
    const { store } = harness;
    await store.add(Array.from({ length: 2_000 }, () => outboxRow()));
    const places = new Map((await db.rows('outbox')).map((row, place) => [row.id, place]));
    const lease = await mustLease(store);
    const spans: number[] = [];
    for (let n = 0; n < 15; n++) {
      const { messages } = await store.read(lease, { limit: 100, maxBytes: MANY });
      const read = messages.map(({ id }) => places.get(id) ?? Number.NaN);
      expect(read).toEqual(read.toSorted((a, b) => a - b));
      spans.push(Math.max(...read) - Math.min(...read));
      await store.settle(lease, outcome({ published: messages }), KEEP);
    }
    // Bucket by bucket, they would drift apart like drunkards: over a thousand places by the fifteenth batch.
    expect(Math.max(...spans)).toBeLessThan(400);
  });

  it('a payload beyond the byte bound does not leave the database', async () => {
    let bytes = 0;
    const measured = db.watchedOutbox((_, rows) => {
      bytes += JSON.stringify(rows).length;
    });
    await measured.add(keyed('k', 8, { payload: 'x'.repeat(100_000) }));
    const lease = await mustLease(measured);
    bytes = 0;
    const read = await measured.read(lease, { limit: 100, maxBytes: 250_000 });
    expect(read.messages).toHaveLength(2);
    expect(read.more).toBe(true);
    expect(bytes).toBeLessThan(210_000);
  });

  it('a lane that was paused meanwhile answers nothing to a lease that was taken before', async () => {
    const { store, pause } = harness;
    await store.add([outboxRow()]);
    const lease = await mustLease(store);
    await pause(LANE);
    expect(await readAll(store, lease)).toEqual([]);
    await db.update('lanes', { paused_until_utc: secondsFromNow(-1) });
    expect(await readAll(store, lease)).toHaveLength(1);
  });
});

describe('what is kept of a published message', () => {
  it('the archive has every column of it', async () => {
    const { store } = harness;
    const row = outboxRow({ headers: { a: 'b' }, correlationId: 'c', partitionKey: 'k', maxRetries: 3 });
    await store.add([row]);
    const columns = tableColumns.archive;
    const [before] = await db.rows('outbox', { id: row.id }, { columns });
    const lease = await mustLease(store);
    const read = await readAll(store, lease);
    await store.settle(lease, outcome({ published: read }), { ...KEEP, afterSuccess: 'archive' });
    expect(await db.count('outbox', { id: row.id })).toBe(0);
    const [archived] = await db.rows('archive', { id: row.id });
    expect(archived?.processed_at_utc).not.toBeNull();
    expect(archived).toEqual({ ...before, state: 2, processed_at_utc: archived?.processed_at_utc });
  });
});

describe('tables by other names', () => {
  it('a whole cycle works in a schema and tables that must be quoted', async () => {
    const tables = { schema: 'My "app"', outboxTable: "Out'box 1", inboxTable: 'In' };
    const named = await engine.createDatabase({ tables });
    try {
      const { outbox: store } = named;
      await store.add(keyed('k', 3));
      const lease = await mustLease(store);
      const [head] = await readAll(store, lease);
      if (head) await store.settle(lease, failure(head, 0), KEEP);
      const again = only(await readAll(store, lease));
      const result = await store.settle(lease, outcome({ published: [again] }), KEEP);
      expect(result.freed).toEqual([again.bucket]);
      await store.openLane({ destination: LANE, reason: 'x', pauseSeconds: 5, tried: [] });
      expect(await store.dueLanes()).toEqual([]);
      expect(await store.secondsToNextDue()).toBeGreaterThan(0);
    } finally {
      await named.drop();
    }
  });
});

async function allIds(): Promise<string[]> {
  return (await db.rows('outbox', {}, { columns: ['id'] })).map(({ id }) => String(id));
}
