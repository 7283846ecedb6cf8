import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LaneStatus } from '../../shared/operations/responses.ts';
import { inboxLanes, inboxStatus } from '../../shared/store/postgres/sql/operations-status-inbox.ts';
import { outboxLanes, outboxStatus } from '../../shared/store/postgres/sql/operations-status-outbox.ts';
import { claimRequest, inboxRow } from '../support/inbox.ts';
import { createOperations, failedColumns, type OperationsFixture } from '../support/operations.ts';

const history = 200_000;
let t: OperationsFixture;

beforeAll(async () => {
  t = await createOperations();
  const hour = (hours: number): Date => new Date(Date.now() + hours * 3_600_000);
  await t.pool.query(
    `INSERT INTO outbox_messages (id, destination, message_type, payload, created_at_utc, state, processed_at_utc)
     SELECT gen_random_uuid(), 'orders', 'order.placed', '{}', now(), 2, now() FROM generate_series(1, ${history})`,
  );
  await t.pool.query(
    `INSERT INTO inbox_messages (id, source, external_message_id, message_type, payload, created_at_utc, state, processed_at_utc)
     SELECT gen_random_uuid(), 'shop', 'old' || n, 'order.placed', '{}', now(), 2, now() FROM generate_series(1, ${history}) AS n`,
  );
  await t.pool.query('VACUUM ANALYZE outbox_messages, inbox_messages');
  await t.row({ created_at_utc: new Date(Date.now() - 90_000) });
  await t.row({ next_attempt_at_utc: new Date(Date.now() - 30_000) });
  await t.row({ next_attempt_at_utc: hour(1) });
  await t.row(failedColumns());
  await t.row(failedColumns({ partition_key: 'k', held: true }));
  await t.row({ partition_key: 'k', held: true });
  await t.row({ state: 1, locked_until_utc: hour(1) });
  await t.row({ destination: 'events' });
  await t.outbox.openLane({ destination: 'events', reason: 'down', pauseSeconds: 60, tried: [] });
  await t.outbox.lease({ destination: 'orders', limit: 2, leaseMs: 60_000, buckets: [1, 2] });
  await t.store.ingest([
    inboxRow(),
    inboxRow(),
    inboxRow({ failedReason: 'x' }),
    inboxRow({ partitionKey: 'a' }),
    inboxRow({ partitionKey: 'a' }),
    inboxRow({ partitionKey: 'a', messageType: 'order.cancelled' }),
    inboxRow({ partitionKey: 'b' }),
    inboxRow({ consumer: 'emails' }),
  ]);
  const { messages } = await t.store.claim(claimRequest());
  const [keyed] = messages.filter(({ partitionKey }) => partitionKey === 'b');
  if (keyed === undefined) throw new Error('the keyed message was not claimed');
  await t.store.release(messages.filter((message) => message !== keyed).slice(0, -1));
  await t.store.markFailed([{ message: keyed, reason: 'it threw', retryInSeconds: undefined }], {
    onFailedKey: 'block',
  });
}, 60_000);
afterAll(() => t.drop());

const brief = (lane: LaneStatus): unknown => ({
  ...lane.lane,
  state: lane.state,
  due: lane.due.count,
  waiting: lane.waiting.count,
  held: lane.held.count,
  leased: lane.leased.count,
  failed: lane.failed.count,
  blocked: lane.blockedKeys.count,
});

describe('status', () => {
  it('has each unfinished or Failed message in exactly one place, lane by lane', async () => {
    const { lanes } = await t.ask({ command: 'status' });
    const none = { state: 'ready', due: 0, waiting: 0, held: 0, leased: 0, failed: 0, blocked: 0 };
    expect(lanes.map(brief)).toEqual([
      { ...none, box: 'outbox', destination: 'events', state: 'open', due: 1 },
      {
        ...none,
        box: 'outbox',
        destination: 'orders',
        due: 2,
        waiting: 1,
        held: 1,
        leased: 1,
        failed: 2,
        blocked: 1,
      },
      { ...none, box: 'inbox', consumer: '', messageType: 'order.cancelled', held: 1 },
      {
        ...none,
        box: 'inbox',
        consumer: '',
        messageType: 'order.placed',
        due: 2,
        held: 1,
        leased: 1,
        failed: 2,
        blocked: 1,
      },
      { ...none, box: 'inbox', consumer: 'emails', messageType: 'order.placed', due: 1 },
    ]);
    const orders = lanes[1];
    expect(orders?.leasedBuckets).toBe(2);
    expect(orders?.oldestDueSeconds).toBeGreaterThanOrEqual(90);
    expect(orders?.oldestDueSeconds).toBeLessThan(120);
    expect(lanes[3]?.lastClaimSeconds).toBeLessThan(30);
    expect(lanes[4]?.lastClaimSeconds).toBeNull();
  });

  it('stops counting at ten thousand, and says that there are more', async () => {
    await t.pool.query(
      `INSERT INTO outbox_messages (id, destination, message_type, payload, created_at_utc, next_attempt_at_utc)
       SELECT gen_random_uuid(), 'late', 'x', '{}', now(), now() + interval '1 hour' FROM generate_series(1, 10050)`,
    );
    await t.row({ destination: 'late', next_attempt_at_utc: new Date(Date.now() - 1000) });
    const late = (await t.ask({ command: 'status' })).lanes.find(
      (lane) => brief(lane) && 'destination' in lane.lane && lane.lane.destination === 'late',
    );
    expect(late).toMatchObject({ waiting: { count: 10_000, more: true }, due: { count: 1, more: false } });
    await t.pool.query("DELETE FROM outbox_messages WHERE destination = 'late'");
    await t.pool.query('VACUUM outbox_messages');
  });

  it('reads partial indexes only: 200,000 rows of history cost no page', async () => {
    const { tables } = t;
    for (const [sql, values] of [
      [outboxLanes(tables), [500]],
      [outboxStatus(tables), [['orders', 'events']]],
      [inboxLanes(tables), [500]],
      [
        inboxStatus(tables),
        [
          ['', '', 'emails'],
          ['order.placed', 'order.cancelled', 'order.placed'],
        ],
      ],
    ] as const) {
      const client = await t.pool.connect();
      try {
        await client.query('BEGIN; SET LOCAL enable_seqscan = off');
        const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${sql}`, [...values]);
        const [{ Plan: plan }] = rows[0]['QUERY PLAN'];
        const used = nodes(plan);
        const big = used.filter((node) =>
          ['outbox_messages', 'inbox_messages'].includes(String(node['Relation Name'])),
        );
        expect(big.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([]);
        expect(
          big
            .map((node) => node['Index Name'])
            .filter((name) => /_(pkey|ended|identity)$/.test(String(name))),
        ).toEqual([]);
        expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']).toBeLessThan(1000);
      } finally {
        await client.query('ROLLBACK');
        client.release();
      }
    }
  });
});

interface PlanNode {
  readonly [name: string]: unknown;
  readonly Plans?: readonly PlanNode[];
}

function nodes(plan: PlanNode): readonly PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)];
}
