import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LaneStatus } from '../../shared/operations/responses.ts';
import { engine } from '../support/engine/engine.ts';
import { failedColumns, operatingOn } from '../support/engine/operations.ts';
import { daysAgo, secondsFromNow } from '../support/engine/values.ts';
import { claimRequest, inboxRow } from '../support/inbox-rows.ts';

const db = await engine.createDatabase();
const { ask, row } = operatingOn(db);

beforeAll(async () => {
  const history = Array.from({ length: 500 }, () => ({ state: 2, processed_at_utc: daysAgo(1) }));
  await db.insertMany('outbox', history);
  await db.insertMany('inbox', history);
  await row({ created_at_utc: secondsFromNow(-90) });
  await row({ next_attempt_at_utc: secondsFromNow(-30) });
  await row({ next_attempt_at_utc: secondsFromNow(3_600) });
  await row(failedColumns());
  await row(failedColumns({ partition_key: 'k', held: true }));
  await row({ partition_key: 'k', held: true });
  await row({ state: 1, locked_until_utc: secondsFromNow(3_600) });
  await row({ destination: 'events' });
  await db.outbox.openLane({ destination: 'events', reason: 'down', pauseSeconds: 60, tried: [] });
  await db.outbox.lease({ destination: 'orders', limit: 2, leaseMs: 60_000, buckets: [1, 2] });
  await db.inbox.ingest([
    inboxRow(),
    inboxRow(),
    inboxRow({ failedReason: 'x' }),
    inboxRow({ partitionKey: 'a' }),
    inboxRow({ partitionKey: 'a' }),
    inboxRow({ partitionKey: 'a', messageType: 'order.cancelled' }),
    inboxRow({ partitionKey: 'b' }),
    inboxRow({ consumer: 'emails' }),
  ]);
  const { messages } = await db.inbox.claim(claimRequest());
  const [keyed] = messages.filter(({ partitionKey }) => partitionKey === 'b');
  if (keyed === undefined) throw new Error('the keyed message was not claimed');
  await db.inbox.release(messages.filter((message) => message !== keyed).slice(0, -1));
  await db.inbox.markFailed([{ message: keyed, reason: 'it threw', retryInSeconds: undefined }], {
    onFailedKey: 'block',
  });
}, 60_000);
afterAll(() => db.drop());

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
    const { lanes } = await ask({ command: 'status' });
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
    const waiting = { destination: 'late', next_attempt_at_utc: secondsFromNow(3_600) };
    await db.insertMany('outbox', Array(10_050).fill(waiting));
    await row({ destination: 'late', next_attempt_at_utc: secondsFromNow(-1) });
    const late = (await ask({ command: 'status' })).lanes.find(
      (lane) => brief(lane) && 'destination' in lane.lane && lane.lane.destination === 'late',
    );
    expect(late).toMatchObject({ waiting: { count: 10_000, more: true }, due: { count: 1, more: false } });
  });
});
