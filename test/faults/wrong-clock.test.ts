import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MaintainReport } from '../../shared/operations/maintain.ts';
import { engine } from '../support/engine/engine.ts';
import { createRelayWorld, type RelayWorld } from '../support/engine/relay-world.ts';
import { daysAgo, not } from '../support/engine/values.ts';
import { inboxRow } from '../support/inbox-rows.ts';
import { until } from '../support/until.ts';
import type { Fate } from './children/points.ts';
import { type Functions, functionsOf } from './functions.ts';

const HOUR_MS = 3_600_000;
const clocks = { ahead: HOUR_MS, behind: -HOUR_MS } as const;
type Clock = keyof typeof clocks;

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

/** Adds a function whose process has a clock that is off. */
async function add(
  entry: string,
  clock: Clock,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const name = `${entry} ${clock}`;
  const env = {
    NODE_OPTIONS: `--import ${new URL('children/clock.ts', import.meta.url).href}`,
    CLOCK_OFF_MS: String(clocks[clock]),
    INBOX_TABLE: world.db.tables.inbox,
    ...more,
  };
  await functions.add(name, { entry, env, timeoutMs: entry === 'keeps-time' ? engine.shortMs : 20_000 });
  return name;
}

const relaying = (url: string, leaseSeconds: number) => ({
  RELAYBOX_DESTINATIONS: JSON.stringify({ orders: { type: 'sqs', url } }),
  RELAYBOX_LEASE_SECONDS: String(leaseSeconds),
});
const handling = { RELAYBOX_MESSAGE_LEASE_SECONDS: '1', RELAYBOX_LEASE_MARGIN_SECONDS: '1' };

/** The instants are within a minute of the database's present: no clock of a function went into them. */
function expectNear(seconds: readonly (number | null)[]): void {
  expect(seconds.length).toBeGreaterThan(0);
  for (const left of seconds) expect(Math.abs(Number(left))).toBeLessThan(90);
}

const ingest = (fates: readonly Fate[]) =>
  world.db.inbox.ingest(fates.map((fate) => inboxRow({ payload: JSON.stringify(fate) })));

describe('functions whose clocks are an hour ahead and an hour behind, at once', () => {
  it('publish nothing early, late or twice', async () => {
    const { db } = world;
    const queue = await world.queue('orders');
    // Each is on its way for a while, in which another relay would take it whose clock decided about leases.
    world.gate.inject({ fault: { kind: 'delay', ms: 400 } });
    const message = (n: number) => ({ destination: 'orders', messageType: 'order.placed', payload: { n } });
    await db.add(
      Array.from({ length: 60 }, (_, n) => ({ ...message(n), ...(n % 6 === 0 && { delaySeconds: 3 }) })),
    );
    for (const clock of ['ahead', 'behind'] as const)
      functions.sweep(await add('relays', clock, relaying(queue.url, 30)));
    await until(
      () => db.count('leases', { lock_token: not(null) }),
      (leased) => leased > 0,
      30_000,
    );
    expectNear(await db.secondsLeft('leases', 'locked_until_utc', { lock_token: not(null) }));
    await until(
      () => world.states(),
      (states) => states[2] === 60,
      60_000,
    );
    const rows = await db.rows('outbox', { next_attempt_at_utc: not(null) });
    expect(rows).toHaveLength(10);
    const instant = (value: unknown) => Date.parse(String(value));
    for (const row of rows)
      expect(instant(row.processed_at_utc)).toBeGreaterThanOrEqual(instant(row.next_attempt_at_utc));
    const bodies = await world.sqs.bodies(queue);
    expect(bodies).toHaveLength(60);
    expect(new Set(bodies).size).toBe(60);
  }, 120_000);

  it('handle nothing early, late or twice, and what they add with a delay comes due after it', async () => {
    const { db } = world;
    const fates = Array.from({ length: 12 }, (_, n): Fate => {
      return n % 3 === 0 ? { n, at: 'throws' } : { n, takesMs: 300 };
    });
    await ingest(fates);
    for (const clock of ['ahead', 'behind'] as const)
      functions.sweep(await add('keeps-time', clock, handling));
    await until(
      () => db.count('inbox', { state: 2 }),
      (handled) => handled === 12,
      60_000,
    );
    const expected = fates.map(({ n, at }) => `${n}, in time, attempt ${at ? 2 : 1}`);
    expect((await db.effects.all()).sort()).toEqual(expected.sort());
    expect(await db.count('outbox')).toBe(12);
    expectNear(await db.secondsLeft('outbox', 'next_attempt_at_utc'));
  }, 120_000);
});

describe.each([
  { clock: 'ahead', other: 'behind' },
  { clock: 'behind', other: 'ahead' },
] as const)('a function that is killed, whose clock is an hour $clock', ({ clock, other }) => {
  it('leaves leases that are over by the database’s clock, for functions whose clocks are an hour off the other way', async () => {
    const { db } = world;
    const queue = await world.queue('orders');
    await db.add([{ destination: 'orders', messageType: 'order.placed', payload: 1 }]);
    await ingest([{ n: 1, at: 'written' }]);
    const relay = await add('relays', clock, relaying(queue.url, 2));
    const handler = await add('keeps-time', clock, handling);
    const kill = async () => {
      functions.host.kill(relay, `${relay}.1`);
      return 'break off' as const;
    };
    world.gate.inject({ fault: { kind: 'hold', when: 'before', until: kill }, times: 1 });
    for (const name of [relay, handler]) {
      await expect(functions.host.invoke(name, {})).rejects.toThrow('SIGKILL');
    }
    expectNear(await db.secondsLeft('leases', 'locked_until_utc', { lock_token: not(null) }));
    expectNear(await db.secondsLeft('inbox', 'locked_until_utc', { state: 1 }));
    functions.sweep(await add('relays', other, relaying(queue.url, 2)));
    functions.sweep(await add('keeps-time', other, handling));
    await until(
      () => db.count('inbox', { state: 2 }),
      (handled) => handled === 1,
      60_000,
    );
    await until(
      () => db.count('outbox', { destination: 'orders', state: 2 }),
      (sent) => sent === 1,
      60_000,
    );
    expect(await db.effects.all()).toEqual(['1, in time, attempt 2']);
    expect(await world.sqs.bodies(queue)).toEqual(['1']);
  }, 120_000);

  it('nor does maintenance remove what is to stay for a little, or keep what has stayed long enough', async () => {
    const { db } = world;
    const halfAnHour = 1 / 48;
    await db.insert('outbox', { state: 2, processed_at_utc: daysAgo(7 + halfAnHour) });
    await db.insert('outbox', { state: 2, processed_at_utc: daysAgo(7 - halfAnHour), message_type: 'stays' });
    const maintain = await add('maintains', clock);
    const report = (await functions.host.invoke(maintain, {})) as MaintainReport;
    expect(report).toMatchObject({ removed: { outbox: 1 }, failed: {} });
    expect(await db.rows('outbox', {}, { columns: ['message_type'] })).toEqual([{ message_type: 'stays' }]);
  }, 120_000);
});
