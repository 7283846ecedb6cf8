import { randomInt } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { seeded } from '../../local/demo/random.ts';
import type { LocalQueue } from '../../local/sqs.ts';
import { engine } from '../support/engine/engine.ts';
import { createRelayWorld, type RelayWorld } from '../support/engine/relay-world.ts';
import { not } from '../support/engine/values.ts';
import { until } from '../support/until.ts';
import type { Fate, Place } from './children/points.ts';
import { expectPointsMet, type Functions, functionsOf } from './functions.ts';
import { ShuffledQueue } from './shuffled-queue.ts';

const MESSAGES = 40;
const KEYS = 6;
const types = ['order.placed', 'order.changed'] as const;
/** Where something happens, once each. */
const places: readonly Place[] = ['entry', 'written', 'stored', 'throws', 'committed'];

let world: RelayWorld;
let functions: Functions;
let shuffled: ShuffledQueue | undefined;
beforeEach(async () => {
  world = await createRelayWorld();
  functions = functionsOf(world);
});
afterEach(async () => {
  const shuffling = shuffled?.stop();
  await functions.stop();
  await shuffling;
  await world.stop();
});

/** Everything is a process of its own: two relays, ingest, a handler of each type. */
async function start(destinations: Readonly<Record<string, LocalQueue>>): Promise<void> {
  const mapped = Object.entries(destinations).map(([name, { url }]) => [name, { type: 'sqs', url }]);
  const relay = {
    RELAYBOX_DESTINATIONS: JSON.stringify(Object.fromEntries(mapped)),
    RELAYBOX_LEASE_SECONDS: '2',
  };
  const lease = { RELAYBOX_MESSAGE_LEASE_SECONDS: '1', RELAYBOX_LEASE_MARGIN_SECONDS: '1' };
  await Promise.all([
    functions.add('relays', { concurrency: 2, env: relay }),
    functions.add('ingests', { concurrency: 2 }),
    ...types.map((type) =>
      functions.add(type, {
        entry: 'handles',
        timeoutMs: engine.shortMs,
        env: { ...lease, MESSAGE_TYPE: type },
      }),
    ),
  ]);
}

/** Kills the relay that sends the n-th batch: before the queue has seen it, or with the queue's answer on its way. */
function killRelays(
  ...batches: readonly { readonly n: number; readonly when: 'before' | 'after' }[]
): () => number {
  let sent = 0;
  let killed = 0;
  for (const { n, when } of batches) {
    let instance = '';
    world.gate.inject({
      match: ({ target }) => target === 'AmazonSQS.SendMessageBatch' && ++sent >= n,
      times: 1,
      onHit: ({ userAgent }) => {
        instance = /app\/(relays\.\d+)/.exec(userAgent)?.[1] ?? '';
      },
      fault: {
        kind: 'hold',
        when,
        until: async () => {
          if (functions.host.kill('relays', instance)) killed += 1;
          return 'break off';
        },
      },
    });
  }
  return () => killed;
}

/** Two applications' worth of messages: of each key in order, of both types, some of no key. */
async function produce(destination: string, random: () => number): Promise<readonly Fate[]> {
  const offset = Math.floor(random() * places.length);
  const fates = Array.from({ length: MESSAGES }, (_, n): Fate => {
    const at = n % 8 === 3 ? places[(offset + (n - 3) / 8) % places.length] : undefined;
    return { n, ...(at && { at }) };
  });
  for (let n = 0; n < MESSAGES; n += 8) {
    const messages = fates.slice(n, n + 8).map((payload) => ({
      destination,
      messageType: types[Math.floor(random() * 2)] as string,
      payload,
      ...(payload.n % KEYS !== 0 && { partitionKey: `key ${payload.n % KEYS}` }),
    }));
    await world.db.add(messages);
  }
  return fates;
}

/** Every message was published, taken in, and took effect once; no retry of a publish was used up. */
async function expectAllOnce(fates: readonly Fate[]): Promise<void> {
  const { db } = world;
  await until(
    () => db.count('inbox', { state: 2 }),
    (handled) => handled === MESSAGES,
    90_000,
  );
  await until(
    () => db.count('outbox', { state: 2, destination: not('after') }),
    (sent) => sent === MESSAGES,
    60_000,
  );
  const numbers = fates.map(({ n }) => n);
  const sorted = (values: readonly unknown[]) => values.map(Number).sort((a, b) => a - b);
  expect(sorted(await db.effects.all())).toEqual(numbers);
  const after = await db.rows('outbox', { destination: 'after' }, { columns: ['payload'] });
  expect(sorted(after.map(({ payload }) => payload))).toEqual(numbers);
  expect(await db.count('inbox')).toBe(MESSAGES);
  expect(await db.count('outbox', { retry_count: not(0) })).toBe(0);
  expect(await db.count('keys')).toBe(0);
  expectPointsMet(functions, fates);
}

/** Of each key: the numbers of its messages as they were taken in, and as they took effect. */
async function ordersByKey(): Promise<readonly { arrived: readonly number[]; handled: readonly number[] }[]> {
  const arrived = (await world.db.rows('inbox', {}, { columns: ['payload'] })).map(
    ({ payload }) => (JSON.parse(String(payload)) as Fate).n,
  );
  const handled = (await world.db.effects.all()).map(Number);
  return Array.from({ length: KEYS - 1 }, (_, key) => {
    const ofKey = (n: number) => n % KEYS === key + 1;
    return { arrived: arrived.filter(ofKey), handled: handled.filter(ofKey) };
  });
}

// Another in each run: what it finds is found again by its number.
const fresh = randomInt(1_000_000);

describe.each([1, fresh])('relays, ingest and handlers are killed (seed %i)', (seed) => {
  it('over a standard queue that repeats, shuffles and delays: each message takes effect once, a key’s in order of arrival', async () => {
    const random = seeded(seed);
    const queue = await world.queue('orders');
    await start({ orders: queue });
    const killed = killRelays({ n: 1, when: 'after' }, { n: 3, when: 'before' });
    shuffled = new ShuffledQueue({ host: functions.host, functionName: 'ingests', queue, random });
    functions.sweep('relays', 2);
    for (const type of types) functions.sweep(type);
    await expectAllOnce(await produce('orders', random));
    expect(killed()).toBe(2);
    expect(shuffled.taken).toBeGreaterThan(MESSAGES);
    for (const { arrived, handled } of await ordersByKey()) expect(handled).toEqual(arrived);
  }, 180_000);
});

describe(`relays, ingest and handlers are killed (seed ${fresh})`, () => {
  it('over a FIFO queue that repeats: each message takes effect once, a key’s in the order of their commits', async () => {
    const random = seeded(fresh);
    const queue = await world.queue('orders', { fifo: true, visibilitySeconds: 2 });
    await start({ orders: queue });
    const killed = killRelays({ n: 1, when: 'after' }, { n: 3, when: 'before' });
    functions.poll('ingests', queue, {
      concurrency: 2,
      repeat: ({ attributes }) => attributes.ApproximateReceiveCount === '1' && random() < 0.2,
    });
    functions.sweep('relays', 2);
    for (const type of types) functions.sweep(type);
    await expectAllOnce(await produce('orders', random));
    expect(killed()).toBe(2);
    for (const { handled } of await ordersByKey()) expect(handled).toEqual(handled.toSorted((a, b) => a - b));
  }, 180_000);
});
