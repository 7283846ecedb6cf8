import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inboxRow } from '../../support/inbox.ts';
import { createOperations, type OperationsFixture } from '../../support/operations.ts';

let t: OperationsFixture;

beforeAll(async () => {
  t = await createOperations();
});
afterAll(() => t.drop());

describe('promise 7: instants that another program wrote as infinity', () => {
  it('cost neither a claim, nor the next due time, nor the figures of any lane', async () => {
    for (const instant of ['infinity', '-infinity']) {
      await t.row({ created_at_utc: instant });
      await t.row({ next_attempt_at_utc: instant });
      await t.row({ state: 1, locked_until_utc: instant });
      await t.pool.query(
        `INSERT INTO inbox_messages (id, source, external_message_id, message_type, payload, created_at_utc, next_attempt_at_utc)
         VALUES (gen_random_uuid(), 'shop', $1::text, 'order.placed', '{}', $1::timestamptz, NULL),
           (gen_random_uuid(), 'shop', $1::text || ' later', 'order.placed', '{}', now(), $1::timestamptz)`,
        [instant],
      );
    }
    const request = { consumer: '', messageType: 'order.placed' };
    const claimed = await t.store.claim({
      ...request,
      limit: 10,
      maxBytes: 1e6,
      leaseMs: 60_000,
      onFailedKey: 'block',
    });
    expect(
      claimed.messages
        .map(({ createdAt }) => createdAt)
        .sort()
        .slice(0, 2),
    ).toEqual(['-infinity', expect.stringMatching(/^2/)]);
    expect(await t.store.secondsToNextDue(request)).toBeLessThanOrEqual(60);
    expect(await t.outbox.secondsToNextDue()).toBeUndefined();
    expect(await t.outbox.dueLanes()).toEqual([{ destination: 'orders', state: 'ready' }]);
    await t.store.ingest([inboxRow()]);
    const { lanes } = await t.ask({ command: 'status' });
    expect(lanes).toHaveLength(2);
    for (const { oldestDueSeconds } of lanes) {
      expect(oldestDueSeconds === null || Number.isFinite(oldestDueSeconds)).toBe(true);
    }
  });
});
