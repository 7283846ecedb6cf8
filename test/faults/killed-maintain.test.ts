import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InvocationFailed } from '../../local/function-process.ts';
import type { MaintainReport } from '../../shared/operations/maintain.ts';
import { failedColumns } from '../support/engine/operations.ts';
import { createRelayWorld, type RelayWorld } from '../support/engine/relay-world.ts';
import { daysAgo, not, secondsFromNow } from '../support/engine/values.ts';
import { inboxRow } from '../support/inbox-rows.ts';
import { until } from '../support/until.ts';
import type { Death } from './children/statements.ts';
import { type Functions, functionsOf } from './functions.ts';

let world: RelayWorld;
let functions: Functions;
beforeEach(async () => {
  world = await createRelayWorld();
  functions = functionsOf(world);
});
afterEach(async () => {
  await functions.stop();
  await world.stop();
});

/** One cycle: what it did, or that it was killed. Anything else that ends it is no part of these tests. */
async function cycle(death: Death = {}): Promise<MaintainReport | 'killed'> {
  try {
    return (await functions.host.invoke('maintains', death)) as MaintainReport;
  } catch (error) {
    if (error instanceof InvocationFailed && error.message.includes('SIGKILL')) return 'killed';
    throw error;
  }
}

/** Rows that retention takes: as many as three batches, of each kind. */
async function addEnded(): Promise<void> {
  const old = Array.from({ length: 2_100 }, (_, n) => n);
  const ended = { state: 2, message_type: 'old', created_at_utc: daysAgo(50), processed_at_utc: daysAgo(40) };
  await world.db.insertMany(
    'outbox',
    old.map(() => ended),
  );
  await world.db.insertMany(
    'inbox',
    old.map((n) => ({ ...ended, external_message_id: `old ${n}` })),
  );
  const digest = (n: number) => Buffer.from(String(n).padStart(32));
  await world.db.insertMany(
    'receipts',
    old.map((n) => ({ digest: digest(n), received_at_utc: daysAgo(40) })),
  );
}

/** Rows that must stay as they are, old as they may be. */
async function addStanding(): Promise<void> {
  const { db } = world;
  const old = { message_type: 'stays', created_at_utc: daysAgo(400) };
  await db.insert('outbox', { ...old, state: 2, processed_at_utc: daysAgo(6) });
  await db.insert('outbox', { ...old, state: 4, processed_at_utc: daysAgo(6) });
  await db.insert('outbox', { ...old, next_attempt_at_utc: secondsFromNow(3_600) });
  await db.insert('outbox', { ...old, state: 1, locked_until_utc: secondsFromNow(3_600) });
  await db.insert('outbox', {
    ...old,
    ...failedColumns({ partition_key: 'blocked', held: true, processed_at_utc: daysAgo(300) }),
  });
  await db.insert('outbox', { ...old, partition_key: 'blocked', held: true });
  await db.insert('inbox', { ...old, external_message_id: 'a', state: 2, processed_at_utc: daysAgo(29) });
  await db.insert('inbox', {
    ...old,
    external_message_id: 'b',
    state: 3,
    processed_at_utc: daysAgo(300),
    last_error: 'x',
  });
  await db.insert('inbox', { ...old, external_message_id: 'c', next_attempt_at_utc: secondsFromNow(3_600) });
  await db.insert('receipts', { digest: Buffer.alloc(32, 'stays'), received_at_utc: daysAgo(29) });
}

const standing = async () => [
  await world.db.rows('outbox', { message_type: 'stays' }),
  await world.db.rows('inbox', { message_type: 'stays' }),
  await world.db.count('receipts', { received_at_utc: not(null) }),
];

/** Messages for the relays and handlers that work meanwhile. Of some keys the inbox has lost sight. */
async function addLive(count: number): Promise<void> {
  const numbers = Array.from({ length: count }, (_, n) => n);
  const keyOf = (n: number) => (n % 2 === 0 ? `key ${n % 10}` : null);
  await world.db.add(
    numbers.map((n) => ({
      destination: 'orders',
      messageType: 'live',
      payload: { n },
      ...(n % 2 === 0 && { partitionKey: `key ${n % 10}` }),
    })),
  );
  await world.db.inbox.ingest(
    numbers.map((n) =>
      inboxRow({ messageType: 'order.placed', payload: JSON.stringify({ n }), partitionKey: keyOf(n) }),
    ),
  );
  await world.db.remove('keys', { partition_key: ['key 2', 'key 4'] });
}

describe('maintenance that is killed at one statement after the other, two cycles at once', () => {
  it('removes what has ended and nothing else, and the next one ends it; relays and handlers lose nothing', async () => {
    const { db } = world;
    const queue = await world.queue('orders');
    await addEnded();
    await addStanding();
    await addLive(80);
    const [outbox, inbox] = await standing();
    const destinations = { orders: { type: 'sqs', url: queue.url } };
    await Promise.all([
      functions.add('maintains', { concurrency: 2, timeoutMs: 60_000 }),
      functions.add('order.placed', { entry: 'handles', env: { MESSAGE_TYPE: 'order.placed' } }),
      functions.add('relays', {
        timeoutMs: 30_000,
        env: {
          RELAYBOX_DESTINATIONS: JSON.stringify(destinations),
          RELAYBOX_AFTER_SUCCESS: 'archive',
          RELAYBOX_LEASE_SECONDS: '5',
        },
      }),
    ]);
    // A relay dies as it archives what it has published.
    const archiving = {
      dieAt: [`INSERT INTO ${db.tables.archive}`],
      sent: true,
    };
    await expect(functions.host.invoke('relays', archiving)).rejects.toThrow('SIGKILL');
    functions.sweep('relays');
    functions.sweep('order.placed');

    let killed = 0;
    for (let n = 1; ; n += 5) {
      const ends = await Promise.all([cycle({ dieAt: n }), cycle({ dieAt: n + 1, sent: true })]);
      killed += ends.filter((end) => end === 'killed').length;
      if (!ends.includes('killed')) break;
    }
    expect(killed).toBeGreaterThan(6);
    expect(await cycle()).toMatchObject({ more: false, failed: {} });

    const live = { message_type: 'live' };
    await until(
      () => db.count('archive', live),
      (archived) => archived === 80,
      120_000,
    );
    await until(
      () => db.count('inbox', { message_type: 'order.placed', state: 2 }),
      (handled) => handled === 80,
      120_000,
    );
    expect(await standing()).toEqual([outbox, inbox, 1]);
    expect(await db.count('outbox', { message_type: ['live', 'old'] })).toBe(0);
    expect(await db.count('inbox', { message_type: 'old' })).toBe(0);
    const bodies = (await world.sqs.bodies(queue)).filter((body) => body.includes('"n"'));
    expect(new Set(bodies).size).toBe(80);
    const effects = (await db.effects.all()).map(Number).sort((a, b) => a - b);
    expect(effects).toEqual(Array.from({ length: 80 }, (_, n) => n));
  }, 300_000);
});

describe('maintenance that is killed with buckets leased for a repair', () => {
  it('keeps them for its lease, in which other cycles do the rest; the repair is done after that', async () => {
    const { db } = world;
    await db.insert('outbox', { partition_key: 'orphan', held: true });
    await db.insert('outbox', { state: 2, processed_at_utc: daysAgo(40) });
    await functions.add('maintains', { timeoutMs: 60_000 });
    expect(await cycle({ dieAt: ['FROM followers AS f', 'FROM @free AS f'] })).toBe('killed');
    const leased = await db.secondsLeft('leases', 'locked_until_utc', { lock_token: not(null) });
    expect(leased).toHaveLength(1);
    expect(leased[0]).toBeLessThan(20);
    const meanwhile = await cycle();
    expect(meanwhile).toMatchObject({ releasedOrphans: 0, removed: { outbox: 1 }, failed: {} });
    // Its time goes by.
    await db.update('leases', { locked_until_utc: secondsFromNow(-0.001) });
    expect(await cycle()).toMatchObject({ releasedOrphans: 1, failed: {} });
    expect(await db.count('outbox', { held: true })).toBe(0);
  }, 120_000);
});
