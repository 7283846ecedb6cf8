import { randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { LaneLease, ReadResult } from '../../shared/store/outbox-store.ts';
import { engine } from '../support/engine/engine.ts';
import { failedColumns, operatingOn } from '../support/engine/operations.ts';
import { daysAgo, secondsFromNow } from '../support/engine/values.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
beforeEach(() => db.clear('outbox', 'leases', 'lanes'));

const { ask, row, outboxRow } = operatingOn(db);

const leaseAll = async (): Promise<LaneLease> => {
  const buckets = Array.from({ length: 64 }, (_, bucket) => bucket);
  const lease = await db.outbox.lease({ destination: 'orders', limit: 64, leaseMs: 20_000, buckets });
  if (lease === undefined) throw new Error('no lease');
  return lease;
};
const readAll = async (lease: LaneLease): Promise<ReadResult> =>
  await db.outbox.read(lease, { limit: 100, maxBytes: 1e6 });
const settle = { leaseMs: 20_000, afterSuccess: 'keep', onFailedKey: 'block' } as const;

describe('requeue', () => {
  it('gives a Failed message its retries anew, keeps the error, and counts the replay up each time', async () => {
    const id = await row(failedColumns({ headers: { tenant: 'a' } }));
    expect(await ask({ command: 'requeue', ids: [id] })).toEqual({
      command: 'requeue',
      dryRun: false,
      changed: [{ id, box: 'outbox' }],
      refused: [],
      next: null,
    });
    expect(await outboxRow(id)).toMatchObject({
      state: 0,
      held: false,
      retry_count: 0,
      next_attempt_at_utc: null,
      processed_at_utc: null,
      last_error: 'the queue refused it',
      headers: { tenant: 'a', 'relaybox-replay': '1' },
    });
    await db.update('outbox', { state: 3 });
    await ask({ command: 'requeue', ids: [id] });
    const lease = await leaseAll();
    const { messages } = await readAll(lease);
    expect(messages.map(({ id: read, replay, headers }) => ({ read, replay, headers }))).toEqual([
      { read: id, replay: 2, headers: { tenant: 'a' } },
    ]);
  });

  it('is idempotent: of two at once, one changes the message, and the other says what it is', async () => {
    const id = await row(failedColumns());
    const both = await Promise.all([1, 2].map(() => ask({ command: 'requeue', ids: [id] })));
    expect(both.flatMap(({ changed }) => changed)).toHaveLength(1);
    expect((await outboxRow(id)).headers).toEqual({ 'relaybox-replay': '1' });
    const again = await ask({ command: 'requeue', ids: [id] });
    expect(again.refused[0]?.reason).toContain('not Failed');
  });

  it('refuses Discarded, published and unknown messages with a reason each, and changes nothing', async () => {
    const discarded = await row({ state: 4, processed_at_utc: daysAgo(0) });
    const published = await row({ state: 2, processed_at_utc: daysAgo(0) });
    const { changed, refused } = await ask({
      command: 'requeue',
      ids: [discarded, published, randomUUID()],
    });
    expect(changed).toEqual([]);
    expect(refused.map(({ reason }) => reason)).toEqual([
      expect.stringContaining('final'),
      expect.stringContaining('published already'),
      expect.stringContaining('no such message'),
    ]);
    expect((await outboxRow(discarded)).state).toBe(4);
  });

  it('unblocks a key with its head first: the followers go when it is published, in order', async () => {
    const head = await row(failedColumns({ partition_key: 'k', held: true }));
    const second = await row({ partition_key: 'k', held: true });
    const third = await row({ partition_key: 'k', held: true });
    await ask({ command: 'requeue', ids: [head] });
    const lease = await leaseAll();
    const first = await readAll(lease);
    expect(first.messages.map(({ id }) => id)).toEqual([head]);
    await db.outbox.settle(lease, { published: first.messages, failed: [], rejected: [] }, settle);
    const next = await readAll(lease);
    expect(next.messages.map(({ id }) => id)).toEqual([second, third]);
  });

  it('waits for a bucket that a relay holds, and after that says so instead of writing beside it', async () => {
    const id = await row(failedColumns());
    const lease = await leaseAll();
    const busy = await ask({ command: 'requeue', ids: [id], waitSeconds: 0 });
    expect(busy.changed).toEqual([]);
    expect(busy.refused[0]?.reason).toMatch(/a relay held its bucket \(\d+ of orders\)/);
    expect((await outboxRow(id)).state).toBe(3);
    const waiting = ask({ command: 'requeue', ids: [id], waitSeconds: 10 });
    setTimeout(() => db.outbox.release(lease), 200);
    expect((await waiting).changed).toHaveLength(1);
  });

  it('takes a whole lane page by page, each message once, and only counts them in a dry run', async () => {
    for (let n = 0; n < 7; n++) await row(failedColumns());
    const other = await row(failedColumns({ destination: 'other' }));
    const dry = await ask({ command: 'requeue', all: true, destination: 'orders', dryRun: true });
    expect(dry).toMatchObject({ dryRun: true, next: null });
    expect(dry.changed).toHaveLength(7);
    expect((await ask({ command: 'failed', destination: 'orders' })).messages).toHaveLength(7);
    let after: string | null = null;
    const sizes: number[] = [];
    do {
      const page: { changed: readonly unknown[]; next: string | null } = await ask({
        command: 'requeue',
        all: true,
        destination: 'orders',
        limit: 3,
        after,
      });
      sizes.push(page.changed.length);
      after = page.next;
    } while (after !== null);
    expect(sizes).toEqual([3, 3, 1]);
    expect((await outboxRow(other)).state).toBe(3);
  });

  it('leaves headers alone that are no object, and counts on from a replay number of nonsense', async () => {
    const list = await row(failedColumns({ headers: '["a"]' }));
    const odd = await row(failedColumns({ headers: { 'relaybox-replay': 'many' } }));
    expect((await ask({ command: 'requeue', ids: [list, odd] })).changed).toHaveLength(2);
    expect((await outboxRow(list)).headers).toEqual(['a']);
    expect((await outboxRow(odd)).headers).toEqual({ 'relaybox-replay': '1' });
  });
});

describe('discard', () => {
  const why = { reason: 'sent twice by mistake', by: 'Ada' };

  it('ends due, waiting, held and Failed messages in Discarded, with who and why', async () => {
    const ids = [
      await row(),
      await row({ next_attempt_at_utc: secondsFromNow(3_600) }),
      await row({ partition_key: 'k', held: true }),
      await row(failedColumns()),
    ];
    const { changed } = await ask({ command: 'discard', ids, ...why });
    expect(changed.map(({ id }) => id).sort()).toEqual([...ids].sort());
    for (const id of ids) {
      const ended = await outboxRow(id);
      expect(ended).toMatchObject({
        state: 4,
        held: false,
        last_error: 'Discarded by Ada: sent twice by mistake',
      });
      expect(ended.processed_at_utc).toMatch(/^\d{4}-.*Z$/);
    }
  });

  it('is not undone by the settle of a relay that had the message on the wire', async () => {
    const id = await row();
    const lease = await leaseAll();
    const { messages } = await readAll(lease);
    const waiting = ask({ command: 'discard', ids: [id], ...why, waitSeconds: 10 });
    // The relay is frozen for longer than its lease; the discard gets the bucket.
    await db.update('leases', { locked_until_utc: secondsFromNow(-1) });
    expect((await waiting).changed).toHaveLength(1);
    const late = await db.outbox.settle(lease, { published: messages, failed: [], rejected: [] }, settle);
    expect(late.lost).toEqual([id]);
    expect((await outboxRow(id)).state).toBe(4);
  });

  it('lets the followers of a blocking message go, up to the next one that waits', async () => {
    const head = await row(failedColumns({ partition_key: 'k', held: true }));
    const second = await row({ partition_key: 'k', held: true });
    await row({ partition_key: 'k', next_attempt_at_utc: secondsFromNow(3_600) });
    const fourth = await row({ partition_key: 'k', held: true });
    await ask({ command: 'discard', ids: [head], ...why });
    expect((await outboxRow(second)).held).toBe(false);
    expect((await outboxRow(fourth)).held).toBe(true);
    const lease = await leaseAll();
    expect((await readAll(lease)).messages.map(({ id }) => id)).toEqual([second]);
  });

  it('respects the claim of another program while it runs', async () => {
    const running = await row({ state: 1, locked_until_utc: secondsFromNow(60) });
    const over = await row({ state: 1, locked_until_utc: secondsFromNow(-60) });
    const { changed, refused } = await ask({ command: 'discard', ids: [running, over], ...why });
    expect(changed.map(({ id }) => id)).toEqual([over]);
    expect(refused).toEqual([{ id: running, reason: expect.stringContaining('another program') }]);
  });

  it('of a whole lane takes only the Failed messages', async () => {
    const due = await row();
    const failed = await row(failedColumns());
    const { changed } = await ask({ command: 'discard', all: true, destination: 'orders', ...why });
    expect(changed.map(({ id }) => id)).toEqual([failed]);
    expect((await outboxRow(due)).state).toBe(0);
  });
});

describe('pause and resume', () => {
  it('stops a lane for the relay, outlives a success on the wire, and ends by itself or by a person', async () => {
    await row();
    const pause = { command: 'pause', destination: 'orders', by: 'Ada', reason: 'partner migrates' } as const;
    const paused = await ask({ ...pause, seconds: 3600 });
    expect(paused.pause).toMatchObject({ by: 'Ada', reason: 'partner migrates' });
    expect(paused.pause?.until).toMatch(/^\d{4}-.*Z$/);
    expect(await db.outbox.dueLanes()).toEqual([]);
    await db.outbox.openLane({ destination: 'orders', reason: 'down', pauseSeconds: 0, tried: [] });
    const { lanes } = await ask({ command: 'status' });
    expect(lanes[0]).toMatchObject({ state: 'paused', breaker: { lastError: 'down' } });
    expect((await ask({ command: 'resume', destination: 'orders' })).changed).toBe(true);
    expect((await ask({ command: 'resume', destination: 'orders' })).changed).toBe(false);
    expect((await ask({ command: 'status' })).lanes[0]).toMatchObject({ state: 'open', pause: null });
    await db.clear('lanes');
    await ask({ ...pause, seconds: 1 });
    await db.update('lanes', { paused_until_utc: secondsFromNow(-1) });
    expect(await db.outbox.dueLanes()).toHaveLength(1);
    expect((await ask({ command: 'status' })).lanes[0]?.state).toBe('ready');
  });
});
