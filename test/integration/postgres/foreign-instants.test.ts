import { afterAll, describe, expect, it } from 'vitest';
import { engine } from '../../support/engine/engine.ts';
import { operatingOn } from '../../support/engine/operations.ts';
import { claimRequest, inboxRow } from '../../support/inbox-rows.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
const { ask } = operatingOn(db);

describe('promise 7: instants that another program wrote as infinity', () => {
  it('cost neither a claim, nor the next due time, nor the figures of any lane', async () => {
    for (const instant of ['infinity', '-infinity']) {
      await db.sql(
        {
          postgres: `INSERT INTO outbox_messages (id, destination, message_type, payload, created_at_utc, next_attempt_at_utc, state, locked_until_utc)
           VALUES (gen_random_uuid(), 'orders', 'order.placed', '{}', $1::timestamptz, NULL, 0, NULL),
             (gen_random_uuid(), 'orders', 'order.placed', '{}', now(), $1::timestamptz, 0, NULL),
             (gen_random_uuid(), 'orders', 'order.placed', '{}', now(), NULL, 1, $1::timestamptz)`,
          sqlserver: '',
        },
        [instant],
      );
      await db.sql(
        {
          postgres: `INSERT INTO inbox_messages (id, source, external_message_id, message_type, payload, created_at_utc, next_attempt_at_utc)
         VALUES (gen_random_uuid(), 'shop', $1::text, 'order.placed', '{}', $1::timestamptz, NULL),
           (gen_random_uuid(), 'shop', $1::text || ' later', 'order.placed', '{}', now(), $1::timestamptz)`,
          sqlserver: '',
        },
        [instant],
      );
    }
    const request = { consumer: '', messageType: 'order.placed' };
    const claimed = await db.inbox.claim(claimRequest({ leaseMs: 60_000 }));
    expect(
      claimed.messages
        .map(({ createdAt }) => createdAt)
        .sort()
        .slice(0, 2),
    ).toEqual(['-infinity', expect.stringMatching(/^2/)]);
    expect(await db.inbox.secondsToNextDue(request)).toBeLessThanOrEqual(60);
    expect(await db.outbox.secondsToNextDue()).toBeUndefined();
    expect(await db.outbox.dueLanes()).toEqual([{ destination: 'orders', state: 'ready' }]);
    await db.inbox.ingest([inboxRow()]);
    const { lanes } = await ask({ command: 'status' });
    expect(lanes).toHaveLength(2);
    for (const { oldestDueSeconds } of lanes) {
      expect(oldestDueSeconds === null || Number.isFinite(oldestDueSeconds)).toBe(true);
    }
  });
});
