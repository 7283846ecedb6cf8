import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRelayWorld, quick, type RelayWorld } from '../support/engine/relay-world.ts';
import { above, not, secondsFromNow } from '../support/engine/values.ts';
import { until } from '../support/until.ts';

let world: RelayWorld;
const children: ChildProcess[] = [];
beforeEach(async () => {
  world = await createRelayWorld();
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await world.stop();
});

function startRelay(...args: string[]): ChildProcess {
  const child = fork(
    fileURLToPath(new URL('children/relay.ts', import.meta.url)),
    [world.gate.url, ...args],
    {
      env: { ...process.env, RELAYBOX_DATABASE_URL: world.db.url },
      execPath: process.execPath,
      execArgv: [],
      stdio: 'inherit',
    },
  );
  children.push(child);
  return child;
}

describe('a relay killed with its buckets leased', () => {
  it('the messages in other buckets go at once, those in its own within the lease, and none is lost', async () => {
    const leaseMs = 8_000;
    const queue = await world.queue('orders');
    await world.db.add(
      Array.from({ length: 640 }, (_, n) => ({
        destination: 'orders',
        messageType: 'order.placed',
        payload: { n },
      })),
    );
    // The victim's every send hangs, so that it is in the middle of a batch whenever it is killed.
    const never = new Promise<'go on'>(() => undefined);
    let hit: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      hit = resolve;
    });
    const lift = world.gate.inject({
      fault: { kind: 'hold', when: 'before', until: () => never },
      onHit: () => hit(),
    });
    const victim = startRelay(queue.url, String(leaseMs));
    await held;
    victim.kill('SIGKILL');
    await once(victim, 'exit');
    lift();
    const killed = Date.now();
    const { db } = world;
    const leased = await db.rows('leases', { locked_until_utc: above(secondsFromNow(0)) });
    expect(leased.length).toBeGreaterThan(0);
    const buckets = leased.map(({ bucket }) => Number(bucket));
    const inOthers = async (): Promise<number> =>
      (await db.count('outbox', { state: 0 })) - (await db.count('outbox', { state: 0, bucket: buckets }));

    const relay = world.relay(quick);
    const running = relay.run(25_000);
    await until(inOthers, (left) => left === 0, leaseMs);
    expect(Date.now() - killed).toBeLessThan(leaseMs);
    expect((await world.states())[0]).toBeGreaterThan(0);
    await until(
      () => world.states(),
      (states) => states[2] === 640,
      leaseMs + 3_000,
    );
    expect(Date.now() - killed).toBeLessThan(leaseMs + 3_000);
    relay.abort();
    await running;
    expect(new Set(await world.sqs.bodies(queue)).size).toBe(640);
  }, 70_000);

  it('killed between publish and settle, it makes a duplicate, never a loss', async () => {
    const queue = await world.queue('orders');
    await world.db.add([{ destination: 'orders', messageType: 'order.placed', payload: { n: 1 } }]);
    const never = new Promise<'go on'>(() => undefined);
    const lift = world.gate.inject({ fault: { kind: 'hold', when: 'after', until: () => never } });
    const victim = startRelay(queue.url, '1000');
    await until(
      () => world.sqs.depth(queue),
      (depth) => depth.ready === 1,
    );
    victim.kill('SIGKILL');
    await once(victim, 'exit');
    lift();
    expect(await world.states()).toEqual({ 0: 1 });
    const relay = world.relay(quick);
    const running = relay.run(10_000);
    await until(
      () => world.states(),
      (states) => states[2] === 1,
    );
    relay.abort();
    await running;
    expect(await world.sqs.bodies(queue)).toEqual(['{"n":1}', '{"n":1}']);
    expect(await world.db.count('outbox', { retry_count: not(0) })).toBe(0);
  }, 60_000);
});
