import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Deadline } from '../../shared/delivery/deadline.ts';
import type { MetricName, Telemetry } from '../../shared/delivery/telemetry.ts';
import { type MaintainReport, maintain } from '../../shared/operations/maintain.ts';
import { engine } from '../support/engine/engine.ts';
import { failedColumns, operatingOn } from '../support/engine/operations.ts';
import { daysAgo, secondsFromNow } from '../support/engine/values.ts';
import { claimRequest, inboxRow } from '../support/inbox-rows.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
beforeEach(() => db.clear());

const { ask, row, outboxRow } = operatingOn(db);

interface Counted {
  readonly telemetry: Telemetry;
  readonly of: (metric: MetricName, lane?: string) => number | undefined;
}

function counting(): Counted {
  const sums = new Map<string, number>();
  const key = (metric: string, lane?: string): string => `${metric} ${lane ?? ''}`;
  const nothing = (): void => undefined;
  return {
    telemetry: {
      logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
      count: (metric, value, lane) => {
        sums.set(key(metric, lane), (sums.get(key(metric, lane)) ?? 0) + value);
      },
    },
    of: (metric, lane) => sums.get(key(metric, lane)),
  };
}

async function cycle(ms = 20_000): Promise<MaintainReport & { readonly counted: Counted }> {
  const counted = counting();
  const report = await maintain(db.maintenance, { deadline: Deadline.in(ms), telemetry: counted.telemetry });
  expect(report.failed).toEqual({});
  return { ...report, counted };
}

describe('retention', () => {
  it('removes Processed and Discarded rows by when they ended, and no other state, however old', async () => {
    const old = { created_at_utc: daysAgo(400), processed_at_utc: daysAgo(8) };
    await row({ ...old, state: 2 });
    await row({ ...old, state: 4 });
    const kept = [
      await row({ ...old, state: 2, processed_at_utc: daysAgo(6) }),
      await row(failedColumns({ ...old, processed_at_utc: daysAgo(300) })),
      await row({ created_at_utc: daysAgo(400) }),
      await row({ created_at_utc: daysAgo(400), state: 1, locked_until_utc: daysAgo(300) }),
      await row({ created_at_utc: daysAgo(400), partition_key: 'k', held: true }),
    ];
    const { removed, more } = await cycle();
    expect({ removed, more }).toEqual({ removed: { outbox: 2, inbox: 0, receipts: 0 }, more: false });
    const left = await db.rows('outbox', {}, { columns: ['id'] });
    expect(left.map(({ id }) => id).sort()).toEqual(kept.sort());
  });

  it('keeps inbox rows and receipts for thirty days', async () => {
    await db.inbox.ingest([1, 2, 3].map((n) => inboxRow({ externalMessageId: `r${n}` })));
    const ended = (id: string, state: number, days: number) =>
      db.update(
        'inbox',
        { state, processed_at_utc: daysAgo(days), last_error: state === 3 ? 'x' : null },
        { external_message_id: id },
      );
    await ended('r1', 2, 31);
    await ended('r2', 2, 29);
    await ended('r3', 3, 400);
    await db.insert('receipts', { digest: Buffer.alloc(32, 'a'), received_at_utc: daysAgo(31) });
    await db.insert('receipts', { digest: Buffer.alloc(32, 'b'), received_at_utc: daysAgo(29) });
    expect((await cycle()).removed).toEqual({ outbox: 0, inbox: 1, receipts: 1 });
    expect(await db.count('inbox')).toBe(2);
  });

  it('steps over rows that somebody has locked, and is harmless twice at once', async () => {
    const locked = await row({ state: 2, processed_at_utc: daysAgo(9) });
    for (let n = 0; n < 5; n++) await row({ state: 2, processed_at_utc: daysAgo(8) });
    const holder = await db.hold('outbox', { id: locked });
    const reports = await Promise.all([cycle(), cycle()]).finally(() => holder.release());
    expect(reports.reduce((sum, { removed }) => sum + removed.outbox, 0)).toBe(5);
    expect((await db.rows('outbox', {}, { columns: ['id'] }))[0]?.id).toBe(locked);
  });

  it('by hand: counts in a dry run, removes up to the limit, and says that there is more', async () => {
    for (let n = 0; n < 5; n++) await row({ state: 2, processed_at_utc: daysAgo(2) });
    const purge = { command: 'purge', from: 'outbox', olderThanDays: 1 } as const;
    expect((await ask({ ...purge, dryRun: true })).removed).toEqual({ count: 5, more: false });
    expect((await ask({ ...purge, limit: 3 })).removed).toEqual({ count: 3, more: true });
    expect((await ask({ ...purge, limit: 3 })).removed).toEqual({ count: 2, more: false });
  });
});

describe('figures', () => {
  it('says per lane how much is due, how old, Failed, blocked, paused and open', async () => {
    await row({ created_at_utc: secondsFromNow(-120) });
    await row(failedColumns({ partition_key: 'k', held: true }));
    await ask({ command: 'pause', destination: 'events', by: 'Ada', reason: 'x' });
    await db.outbox.openLane({ destination: 'mails', reason: 'down', pauseSeconds: 60, tried: [] });
    await db.inbox.ingest([inboxRow({ messageType: 'nobody.wants' }), inboxRow({ messageType: 'claimed' })]);
    await db.update('inbox', { created_at_utc: secondsFromNow(-120) });
    await db.inbox.claim(claimRequest({ messageType: 'claimed', limit: 0 }));
    const { counted } = await cycle();
    expect(counted.of('Backlog', 'orders')).toBe(1);
    expect(counted.of('OldestDueAgeSeconds', 'orders')).toBeGreaterThanOrEqual(120);
    expect(counted.of('FailedMessages', 'orders')).toBe(1);
    expect(counted.of('BlockedKeys', 'orders')).toBe(1);
    expect(counted.of('PausedLanes', 'events')).toBe(1);
    expect(counted.of('OpenLanes', 'mails')).toBe(1);
    expect(counted.of('OpenLanes', 'orders')).toBe(0);
    expect(counted.of('UnhandledTypes', 'nobody.wants')).toBe(1);
    expect(counted.of('UnhandledTypes', 'claimed')).toBe(0);
  });

  it('counts leases that ran out, of relays and of handlers', async () => {
    await row();
    await db.outbox.lease({ destination: 'orders', limit: 1, leaseMs: 1, buckets: [3] });
    await db.inbox.ingest([inboxRow()]);
    await db.inbox.claim(claimRequest({ leaseMs: 1 }));
    await new Promise((resolve) => setTimeout(resolve, 20));
    const { counted } = await cycle();
    expect(counted.of('ExpiredLeases', 'orders')).toBe(1);
    expect(counted.of('ExpiredLeases', 'order.placed')).toBe(1);
  });
});

describe('repairs', () => {
  it('lets go what is held behind nothing, and not what is held behind something', async () => {
    const orphan = await row({ partition_key: 'orphan', held: true });
    await row(failedColumns({ partition_key: 'blocked', held: true }));
    const behind = await row({ partition_key: 'blocked', held: true });
    await row({ partition_key: 'waits', next_attempt_at_utc: secondsFromNow(60) });
    const late = await row({ partition_key: 'waits', held: true });
    expect((await cycle()).releasedOrphans).toBe(1);
    expect((await outboxRow(orphan)).held).toBe(false);
    expect((await outboxRow(behind)).held).toBe(true);
    expect((await outboxRow(late)).held).toBe(true);
  });

  it('leaves a bucket alone that a relay holds: its settle lets the followers go', async () => {
    const orphan = await row({ partition_key: 'orphan', held: true });
    const buckets = Array.from({ length: 64 }, (_, bucket) => bucket);
    await db.outbox.lease({ destination: 'orders', limit: 64, leaseMs: 20_000, buckets });
    expect((await cycle()).releasedOrphans).toBe(0);
    expect((await outboxRow(orphan)).held).toBe(true);
  });

  it('finds the one orphan behind thousands of keys that wait', async () => {
    await db.insertMany(
      'outbox',
      Array.from({ length: 2_500 }, (_, n) => ({
        partition_key: `k${n}`,
        next_attempt_at_utc: secondsFromNow(3_600),
      })),
    );
    await row({ partition_key: 'zzz', held: true });
    expect((await cycle()).releasedOrphans).toBe(1);
  });

  it('sets inbox keys right: without a row, without messages, and with another head', async () => {
    await db.inbox.ingest(
      ['lost', 'empty', 'wrong', 'wrong'].map((partitionKey) => inboxRow({ partitionKey })),
    );
    await db.remove('keys', { partition_key: 'lost' });
    await db.remove('inbox', { partition_key: 'empty' });
    await db.update('keys', { head_sequence: 999, blocked: true }, { partition_key: 'wrong' });
    expect((await cycle()).repairedKeys).toBe(3);
    const keys = await db.rows('keys', {}, { columns: ['partition_key', 'blocked', 'head_sequence'] });
    const heads = await Promise.all(
      ['lost', 'wrong'].map(async (key) => (await db.rows('inbox', { partition_key: key }))[0]?.sequence),
    );
    expect(keys).toEqual([
      { partition_key: 'lost', blocked: false, head_sequence: heads[0] },
      { partition_key: 'wrong', blocked: false, head_sequence: heads[1] },
    ]);
    expect((await cycle()).repairedKeys).toBe(0);
  });

  it('go on where the last cycle’s time was up, so that the last keys are looked at too', async () => {
    const keys = Array.from({ length: 2_500 }, (_, n) => String(n + 1).padStart(5, '0'));
    await db.insertMany(
      'inbox',
      keys.map((key) => ({ external_message_id: key, partition_key: key })),
    );
    const heads = await db.rows('inbox', {}, { columns: ['partition_key', 'sequence', 'message_type'] });
    await db.insertMany(
      'keys',
      heads.slice(0, -1).map(({ partition_key: key, sequence, message_type: type }) => ({
        partition_key: String(key),
        head_sequence: String(sequence),
        head_type: key === '02400' ? 'wrong' : String(type),
      })),
    );
    await db.insertMany(
      'outbox',
      keys.map((key) => ({
        partition_key: key,
        held: key === '02500',
        next_attempt_at_utc: key === '02500' ? null : secondsFromNow(3_600),
      })),
    );
    const pages = (count: number): Deadline => {
      const deadline = Deadline.in(60_000);
      const left = vi.spyOn(deadline, 'remainingMs').mockReturnValue(0);
      for (let n = 0; n < count; n++) left.mockReturnValueOnce(1);
      return deadline;
    };
    const mended: number[] = [];
    for (let call = 0; call < 3; call++) {
      mended.push(await db.maintenance.repairKeys(pages(2)), await db.maintenance.releaseOrphans(pages(1)));
    }
    const sum = (kind: number): number =>
      mended.filter((_, at) => at % 2 === kind).reduce((all, count) => all + count, 0);
    expect([sum(0), sum(1)]).toEqual([2, 1]);
    if (engine.repairsKeysByName) expect(mended).toEqual([0, 0, 0, 0, 2, 1]);
    expect(await db.maintenance.repairKeys(Deadline.in(10_000))).toBe(0);
  });

  it('completes what another program ended in its own way, so that retention and the lists find it', async () => {
    const published = await row({ state: 2 });
    await row({ state: 3 });
    await db.insertMany('inbox', [{ state: 3 }, { state: 2 }]);
    expect((await cycle()).normalised).toBe(4);
    expect((await outboxRow(published)).processed_at_utc).toMatch(/^\d{4}-.*Z$/);
    expect((await ask({ command: 'failed', box: 'inbox' })).messages).toHaveLength(1);
    expect((await cycle()).normalised).toBe(0);
  });

  it('a key that another program’s Failed message blocks says so, and is freed by its requeue', async () => {
    await db.inbox.ingest(['a', 'b'].map((id) => inboxRow({ externalMessageId: id, partitionKey: 'k' })));
    await db.update('inbox', { state: 3 }, { external_message_id: 'a' });
    await db.inbox.ingest(['c', 'd'].map((id) => inboxRow({ externalMessageId: id, partitionKey: 'l' })));
    await db.update('inbox', { state: 2 }, { external_message_id: 'c' });
    await cycle();
    const { messages } = await ask({ command: 'failed', box: 'inbox' });
    expect(messages).toMatchObject([{ externalMessageId: 'a', partitionKey: 'k' }]);
    const claimed = async () =>
      (await db.inbox.claim(claimRequest())).messages.map((message) => message.externalMessageId);
    expect(await claimed()).toEqual(['d']);
    const ids = messages.map(({ id }) => id);
    expect((await ask({ command: 'requeue', ids })).changed).toHaveLength(1);
    expect(await claimed()).toEqual(['a']);
  });

  it('stops at its deadline', async () => {
    await row({ state: 2, processed_at_utc: daysAgo(9) });
    const report = await cycle(0);
    expect(report).toMatchObject({ more: true, removed: { outbox: 0 } });
  });
});

describe('health', () => {
  it('is ready where messages flow and a relay has worked of late', async () => {
    expect(await ask({ command: 'health' })).toMatchObject({ ready: false });
    // Ingest only answers events: its life says nothing of the relay's.
    await db.recordCycle('inbox-ingest');
    expect(await ask({ command: 'health' })).toMatchObject({ ready: false });
    await db.recordCycle('outbox-relay');
    expect(await ask({ command: 'health' })).toMatchObject({ ready: true });
    await db.update('workers', { last_cycle_at_utc: secondsFromNow(-180) }, { worker: 'outbox-relay' });
    const stale = await ask({ command: 'health' });
    expect(stale.checks.find(({ ok }) => !ok)).toMatchObject({
      name: 'cycle',
      detail: expect.stringMatching(/outbox-relay, was (?:1[89]|2\d)\d s ago/),
    });
    await db.recordCycle('outbox-relay');
    await row({ created_at_utc: daysAgo(1) });
    const late = await ask({ command: 'health' });
    expect(late.checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual(['flow']);
    await ask({ command: 'pause', destination: 'orders', by: 'Ada', reason: 'x' });
    expect((await ask({ command: 'health' })).ready).toBe(true);
  });

  it('writes a heartbeat at most once in ten seconds', async () => {
    const stamp = async () => (await db.rows('workers'))[0]?.last_cycle_at_utc;
    await db.recordCycle('w');
    const first = await stamp();
    await db.recordCycle('w');
    expect(await stamp()).toBe(first);
    await db.update('workers', { last_cycle_at_utc: secondsFromNow(-11) });
    const aged = await stamp();
    await db.recordCycle('w');
    expect(await stamp()).not.toBe(aged);
  });
});
