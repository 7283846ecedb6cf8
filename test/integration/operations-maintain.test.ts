import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Deadline } from '../../shared/delivery/deadline.ts';
import type { MetricName, Telemetry } from '../../shared/delivery/telemetry.ts';
import { type MaintainReport, maintain } from '../../shared/operations/maintain.ts';
import { recordCycle } from '../../shared/store/postgres/operations.ts';
import { claimRequest, inboxRow } from '../support/inbox.ts';
import { createOperations, failedColumns, type OperationsFixture } from '../support/operations.ts';

let t: OperationsFixture;
beforeAll(async () => {
  t = await createOperations();
});
afterAll(() => t.drop());
beforeEach(async () => {
  await t.pool.query(
    'TRUNCATE outbox_messages, outbox_leases, outbox_lanes, inbox_messages, inbox_keys, inbox_lanes, inbox_receipts, relaybox_workers',
  );
});

const daysAgo = (days: number): Date => new Date(Date.now() - days * 86_400_000);

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
  const report = await maintain(t.maintenance, { deadline: Deadline.in(ms), telemetry: counted.telemetry });
  expect(report.failed).toEqual({});
  return { ...report, counted };
}

describe('retention', () => {
  it('removes Processed and Discarded rows by when they ended, and no other state, however old', async () => {
    const old = { created_at_utc: daysAgo(400), processed_at_utc: daysAgo(8) };
    await t.row({ ...old, state: 2 });
    await t.row({ ...old, state: 4 });
    const kept = [
      await t.row({ ...old, state: 2, processed_at_utc: daysAgo(6) }),
      await t.row(failedColumns({ ...old, processed_at_utc: daysAgo(300) })),
      await t.row({ created_at_utc: daysAgo(400) }),
      await t.row({ created_at_utc: daysAgo(400), state: 1, locked_until_utc: daysAgo(300) }),
      await t.row({ created_at_utc: daysAgo(400), partition_key: 'k', held: true }),
    ];
    const { removed, more } = await cycle();
    expect({ removed, more }).toEqual({ removed: { outbox: 2, inbox: 0, receipts: 0 }, more: false });
    const left = await t.rows('SELECT id FROM outbox_messages');
    expect(left.map(({ id }) => id).sort()).toEqual(kept.sort());
  });

  it('keeps inbox rows and receipts for thirty days', async () => {
    await t.store.ingest([1, 2, 3].map((n) => inboxRow({ externalMessageId: `r${n}` })));
    const ended = (id: string, state: number, days: number) =>
      t.pool.query(
        'UPDATE inbox_messages SET state = $2, processed_at_utc = $3, last_error = $4 WHERE external_message_id = $1',
        [id, state, daysAgo(days), state === 3 ? 'x' : null],
      );
    await ended('r1', 2, 31);
    await ended('r2', 2, 29);
    await ended('r3', 3, 400);
    await t.pool.query("INSERT INTO inbox_receipts VALUES ('a', $1), ('b', $2)", [daysAgo(31), daysAgo(29)]);
    expect((await cycle()).removed).toEqual({ outbox: 0, inbox: 1, receipts: 1 });
    expect(await t.rows('SELECT 1 FROM inbox_messages')).toHaveLength(2);
  });

  it('steps over rows that somebody has locked, and is harmless twice at once', async () => {
    const locked = await t.row({ state: 2, processed_at_utc: daysAgo(9) });
    for (let n = 0; n < 5; n++) await t.row({ state: 2, processed_at_utc: daysAgo(8) });
    const client = await t.pool.connect();
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM outbox_messages WHERE id = $1 FOR UPDATE', [locked]);
    const reports = await Promise.all([cycle(), cycle()]).finally(() => client.release(true));
    expect(reports.reduce((sum, { removed }) => sum + removed.outbox, 0)).toBe(5);
    expect((await t.rows('SELECT id FROM outbox_messages'))[0]?.['id']).toBe(locked);
  });

  it('by hand: counts in a dry run, removes up to the limit, and says that there is more', async () => {
    for (let n = 0; n < 5; n++) await t.row({ state: 2, processed_at_utc: daysAgo(2) });
    const purge = { command: 'purge', from: 'outbox', olderThanDays: 1 } as const;
    expect((await t.ask({ ...purge, dryRun: true })).removed).toEqual({ count: 5, more: false });
    expect((await t.ask({ ...purge, limit: 3 })).removed).toEqual({ count: 3, more: true });
    expect((await t.ask({ ...purge, limit: 3 })).removed).toEqual({ count: 2, more: false });
  });
});

describe('figures', () => {
  it('says per lane how much is due, how old, Failed, blocked, paused and open', async () => {
    await t.row({ created_at_utc: new Date(Date.now() - 120_000) });
    await t.row(failedColumns({ partition_key: 'k', held: true }));
    await t.ask({ command: 'pause', destination: 'events', by: 'Ada', reason: 'x' });
    await t.outbox.openLane({ destination: 'mails', reason: 'down', pauseSeconds: 60, tried: [] });
    await t.store.ingest([inboxRow({ messageType: 'nobody.wants' }), inboxRow({ messageType: 'claimed' })]);
    await t.pool.query("UPDATE inbox_messages SET created_at_utc = now() - interval '2 minutes'");
    await t.store.claim(claimRequest({ messageType: 'claimed', limit: 0 }));
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
    await t.row();
    await t.outbox.lease({ destination: 'orders', limit: 1, leaseMs: 1, buckets: [3] });
    await t.store.ingest([inboxRow()]);
    await t.store.claim(claimRequest({ leaseMs: 1 }));
    await new Promise((resolve) => setTimeout(resolve, 20));
    const { counted } = await cycle();
    expect(counted.of('ExpiredLeases', 'orders')).toBe(1);
    expect(counted.of('ExpiredLeases', 'order.placed')).toBe(1);
  });
});

describe('repairs', () => {
  it('lets go what is held behind nothing, and not what is held behind something', async () => {
    const orphan = await t.row({ partition_key: 'orphan', held: true });
    await t.row(failedColumns({ partition_key: 'blocked', held: true }));
    const behind = await t.row({ partition_key: 'blocked', held: true });
    await t.row({ partition_key: 'waits', next_attempt_at_utc: new Date(Date.now() + 60_000) });
    const late = await t.row({ partition_key: 'waits', held: true });
    expect((await cycle()).releasedOrphans).toBe(1);
    expect((await t.outboxRow(orphan))['held']).toBe(false);
    expect((await t.outboxRow(behind))['held']).toBe(true);
    expect((await t.outboxRow(late))['held']).toBe(true);
  });

  it('leaves a bucket alone that a relay holds: its settle lets the followers go', async () => {
    const orphan = await t.row({ partition_key: 'orphan', held: true });
    const buckets = Array.from({ length: 64 }, (_, bucket) => bucket);
    await t.outbox.lease({ destination: 'orders', limit: 64, leaseMs: 20_000, buckets });
    expect((await cycle()).releasedOrphans).toBe(0);
    expect((await t.outboxRow(orphan))['held']).toBe(true);
  });

  it('finds the one orphan behind thousands of keys that wait', async () => {
    await t.pool.query(
      `INSERT INTO outbox_messages (id, destination, message_type, payload, created_at_utc, partition_key, next_attempt_at_utc)
       SELECT gen_random_uuid(), 'orders', 'x', '{}', now(), 'k' || n, now() + interval '1 hour' FROM generate_series(1, 2500) AS n`,
    );
    await t.row({ partition_key: 'zzz', held: true });
    expect((await cycle()).releasedOrphans).toBe(1);
  });

  it('sets inbox keys right: without a row, without messages, and with another head', async () => {
    await t.store.ingest(
      ['lost', 'empty', 'wrong', 'wrong'].map((partitionKey) => inboxRow({ partitionKey })),
    );
    await t.pool.query("DELETE FROM inbox_keys WHERE partition_key = 'lost'");
    await t.pool.query("DELETE FROM inbox_messages WHERE partition_key = 'empty'");
    await t.pool.query(
      "UPDATE inbox_keys SET head_sequence = 999, blocked = true WHERE partition_key = 'wrong'",
    );
    expect((await cycle()).repairedKeys).toBe(3);
    const keys = await t.rows(
      'SELECT partition_key, blocked, head_sequence = (SELECT min(sequence) FROM inbox_messages i WHERE i.partition_key = k.partition_key) AS right FROM inbox_keys k ORDER BY 1',
    );
    expect(keys).toEqual([
      { partition_key: 'lost', blocked: false, right: true },
      { partition_key: 'wrong', blocked: false, right: true },
    ]);
    expect((await cycle()).repairedKeys).toBe(0);
  });

  it('go on where the last cycle’s time was up, so that the last keys are looked at too', async () => {
    await t.pool.query(
      `INSERT INTO inbox_messages (id, source, external_message_id, message_type, payload, created_at_utc, partition_key)
       SELECT gen_random_uuid(), 'shop', n::text, 'order.placed', '{}', now(), lpad(n::text, 5, '0') FROM generate_series(1, 2500) AS n`,
    );
    await t.pool.query(
      `INSERT INTO inbox_keys (consumer, source, partition_key, head_sequence, head_type)
       SELECT consumer, source, partition_key, sequence, CASE partition_key WHEN '02400' THEN 'wrong' ELSE message_type END
       FROM inbox_messages WHERE partition_key <> '02500'`,
    );
    await t.pool.query(
      `INSERT INTO outbox_messages (id, destination, message_type, payload, created_at_utc, partition_key, held, next_attempt_at_utc)
       SELECT gen_random_uuid(), 'orders', 'order.placed', '{}', now(), lpad(n::text, 5, '0'), n = 2500,
         CASE WHEN n < 2500 THEN now() + interval '1 hour' END FROM generate_series(1, 2500) AS n`,
    );
    const pages = (count: number): Deadline => {
      const deadline = Deadline.in(60_000);
      const left = vi.spyOn(deadline, 'remainingMs').mockReturnValue(0);
      for (let n = 0; n < count; n++) left.mockReturnValueOnce(1);
      return deadline;
    };
    const mended: number[] = [];
    for (let call = 0; call < 3; call++) {
      mended.push(await t.maintenance.repairKeys(pages(2)), await t.maintenance.releaseOrphans(pages(1)));
    }
    expect(mended).toEqual([0, 0, 0, 0, 2, 1]);
    expect(await t.maintenance.repairKeys(Deadline.in(10_000))).toBe(0);
  });

  it('completes what another program ended in its own way, so that retention and the lists find it', async () => {
    const published = await t.row({ state: 2 });
    await t.row({ state: 3 });
    const columns = '(id, source, external_message_id, message_type, payload, created_at_utc, state)';
    await t.pool.query(
      `INSERT INTO inbox_messages ${columns} VALUES ($1, 'shop', 'f', 'x', '{}', now(), 3), ($2, 'shop', 'p', 'x', '{}', now(), 2)`,
      [randomUUID(), randomUUID()],
    );
    expect((await cycle()).normalised).toBe(4);
    expect((await t.outboxRow(published))['processed_at_utc']).toBeInstanceOf(Date);
    expect((await t.ask({ command: 'failed', box: 'inbox' })).messages).toHaveLength(1);
    expect((await cycle()).normalised).toBe(0);
  });

  it('stops at its deadline', async () => {
    await t.row({ state: 2, processed_at_utc: daysAgo(9) });
    const report = await cycle(0);
    expect(report).toMatchObject({ more: true, removed: { outbox: 0 } });
  });
});

describe('health', () => {
  it('is ready where messages flow and a relay has worked of late', async () => {
    expect(await t.ask({ command: 'health' })).toMatchObject({ ready: false });
    // Ingest only answers events: its life says nothing of the relay's.
    await recordCycle(t.pool, t.tables, 'inbox-ingest');
    expect(await t.ask({ command: 'health' })).toMatchObject({ ready: false });
    await recordCycle(t.pool, t.tables, 'outbox-relay');
    expect(await t.ask({ command: 'health' })).toMatchObject({ ready: true });
    await t.pool.query(
      "UPDATE relaybox_workers SET last_cycle_at_utc = now() - interval '3 minutes' WHERE worker = 'outbox-relay'",
    );
    const stale = await t.ask({ command: 'health' });
    expect(stale.checks.find(({ ok }) => !ok)).toMatchObject({
      name: 'cycle',
      detail: expect.stringMatching(/outbox-relay, was 18\d s ago/),
    });
    await recordCycle(t.pool, t.tables, 'outbox-relay');
    await t.row({ created_at_utc: daysAgo(1) });
    const late = await t.ask({ command: 'health' });
    expect(late.checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual(['flow']);
    await t.ask({ command: 'pause', destination: 'orders', by: 'Ada', reason: 'x' });
    expect((await t.ask({ command: 'health' })).ready).toBe(true);
  });

  it('writes a heartbeat at most once in ten seconds', async () => {
    const stamp = () => t.rows('SELECT last_cycle_at_utc::text AS at, xmin::text FROM relaybox_workers');
    await recordCycle(t.pool, t.tables, 'w');
    const first = await stamp();
    await recordCycle(t.pool, t.tables, 'w');
    expect((await stamp())[0]?.['at']).toBe(first[0]?.['at']);
    await t.pool.query("UPDATE relaybox_workers SET last_cycle_at_utc = now() - interval '11 seconds'");
    await recordCycle(t.pool, t.tables, 'w');
    expect((await stamp())[0]?.['at']).not.toBe(first[0]?.['at']);
  });
});
