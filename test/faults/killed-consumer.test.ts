import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LocalQueue } from '../../local/sqs.ts';
import { createRelayWorld, quick, type RelayWorld } from '../support/engine/relay-world.ts';
import { until } from '../support/until.ts';
import type { Fate } from './children/points.ts';
import { expectPointsMet, type Functions, functionsOf, resume } from './functions.ts';
import { drained, GroupedFeed } from './grouped-feed.ts';

let world: RelayWorld;
let functions: Functions;
let feed: GroupedFeed | undefined;
beforeEach(async () => {
  world = await createRelayWorld();
  functions = functionsOf(world);
});
afterEach(async () => {
  const feeding = feed?.stop();
  await functions.stop();
  await feeding;
  await world.stop();
});

/** Creates the queue and fills it, by way of the outbox. */
async function fill(
  fates: readonly Fate[],
  { fifo, keyOf }: { fifo: boolean; keyOf?: (n: number) => string } = { fifo: false },
): Promise<LocalQueue> {
  const queue = await world.queue('orders', { fifo, visibilitySeconds: 1 });
  await world.db.add(
    fates.map((payload) => ({
      destination: 'orders',
      messageType: 'order.placed',
      payload,
      ...(keyOf && { partitionKey: keyOf(payload.n) }),
    })),
  );
  await world.relay({ ...quick, mode: 'scheduled' }).run();
  const { ready } = await world.sqs.depth(queue);
  expect(ready).toBe(fates.length);
  await world.db.clear('outbox');
  return queue;
}

/** Nothing is left in the queue, and each message has its effect, its receipt and its following message once. */
async function expectAllOnce(queue: LocalQueue, count: number): Promise<void> {
  await until(
    () => world.sqs.depth(queue),
    ({ ready, delayed, inFlight }) => ready + delayed + inFlight === 0,
    90_000,
  );
  const numbers = Array.from({ length: count }, (_, n) => n);
  expect((await world.db.effects.all()).map(Number).sort((a, b) => a - b)).toEqual(numbers);
  const added = await world.db.rows('outbox', {}, { columns: ['payload'] });
  expect(added.map(({ payload }) => Number(payload)).sort((a, b) => a - b)).toEqual(numbers);
  expect(await world.db.count('receipts')).toBe(count);
}

const metPoints = () => [...functions.met().keys()].sort();

describe('consumers straight from a queue that are killed', () => {
  it('before BEGIN, after their writes and after COMMIT: each effect is there once, and nothing is lost', async () => {
    const places = ['entry', 'written', 'committed'] as const;
    const fates = Array.from({ length: 40 }, (_, n): Fate => {
      const at = n % 6 === 0 ? places[(n / 6) % 3] : undefined;
      return { n, ...(at && { at }) };
    });
    const queue = await fill(fates);
    await functions.add('consumes', { concurrency: 3 });
    functions.poll('consumes', queue, { concurrency: 3, batchSize: 5 });
    await expectAllOnce(queue, fates.length);
    expectPointsMet(functions, fates);
  }, 120_000);

  it('after COMMIT, before the answer: the redelivery finds it done', async () => {
    const queue = await fill([{ n: 0, at: 'committed' }]);
    await functions.add('consumes');
    functions.poll('consumes', queue);
    await expectAllOnce(queue, 1);
    expect(metPoints()).toEqual(['committed-0']);
  }, 120_000);

  it('while another waits for what they have written: that one goes on, and does it', async () => {
    const queue = await fill([{ n: 0, at: 'written', how: 'SIGSTOP' }]);
    await functions.add('consumes', { concurrency: 2, timeoutMs: 60_000 });
    functions.poll('consumes', queue, { concurrency: 2 });
    await until(
      () => world.db.waiting(),
      (waiting) => waiting > 0,
      60_000,
    );
    expect(await world.db.effects.all()).toEqual([]);
    expect(functions.host.kill('consumes', functions.met().get('written-0') ?? 0)).toBe(true);
    await expectAllOnce(queue, 1);
  }, 120_000);
});

describe('consumers stopped for longer than the visibility timeout, which then go on', () => {
  it('find their message handled by another, or hold it until they have: it takes effect once', async () => {
    const places = ['entry', 'written', 'committed'] as const;
    const fates = places.map((at, n): Fate => ({ n, at, how: 'SIGSTOP' }));
    const queue = await fill(fates);
    await functions.add('consumes', { concurrency: 5, timeoutMs: 60_000 });
    functions.poll('consumes', queue, { concurrency: 5, batchSize: 1 });
    await until(metPoints, (points) => points.length === 3, 60_000);
    // The second: another waits for it. The first and the third: another has handled it, or seen that it was.
    await until(
      () => world.db.waiting(),
      (waiting) => waiting > 0,
      60_000,
    );
    await until(
      () => world.db.effects.all(),
      (effects) => effects.sort().join() === '0,2',
      60_000,
    );
    await until(
      () => world.sqs.bodies(queue),
      (bodies) => bodies.length === 1,
      60_000,
    );
    for (const pid of functions.met().values()) resume(pid);
    await expectAllOnce(queue, 3);
  }, 120_000);

  it('and for longer than their time: another does it, and what they go on with changes nothing', async () => {
    const queue = await fill([{ n: 0, at: 'written', how: 'SIGSTOP' }]);
    await functions.add('consumes', { concurrency: 2, timeoutMs: 6_000 });
    functions.poll('consumes', queue, { concurrency: 2 });
    await until(
      () => world.db.effects.all(),
      (effects) => effects.length > 0,
      60_000,
    );
    resume(functions.met().get('written-0'));
    await expectAllOnce(queue, 1);
  }, 120_000);
});

describe('consumers of a FIFO queue that are killed, some of whose messages fail', () => {
  it('keep the order of each group, and each effect is there once', async () => {
    const places = ['entry', 'throws', 'written', 'committed'] as const;
    const fates = Array.from({ length: 36 }, (_, n): Fate => {
      const at = n % 4 === 0 ? places[(n / 4) % 4] : undefined;
      return { n, ...(at && { at }) };
    });
    const queue = await fill(fates, { fifo: true, keyOf: (n) => `group ${n % 3}` });
    await functions.add('consumes', { concurrency: 2 });
    feed = new GroupedFeed(functions.host, 'consumes', await drained(queue), 2);
    await until(
      () => feed?.left,
      (left) => left === 0,
      60_000,
    );
    await expectAllOnce(queue, fates.length);
    expectPointsMet(functions, fates);
    const effects = (await world.db.effects.all()).map(Number);
    for (const ofGroup of [0, 1, 2].map((group) => effects.filter((n) => n % 3 === group))) {
      expect(ofGroup).toEqual(ofGroup.toSorted((a, b) => a - b));
    }
  }, 120_000);
});
