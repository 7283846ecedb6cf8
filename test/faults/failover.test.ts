import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LocalQueue } from '../../local/sqs.ts';
import { engine } from '../support/engine/engine.ts';
import { createRelayWorld, type RelayWorld } from '../support/engine/relay-world.ts';
import { not } from '../support/engine/values.ts';
import { inboxRow } from '../support/inbox-rows.ts';
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import type { Fate, Place } from './children/points.ts';
import { expectPointsMet, type Functions, functionsOf } from './functions.ts';

let world: RelayWorld;
let functions: Functions;
let proxy: TcpProxy;
beforeEach(async () => {
  world = await createRelayWorld();
  functions = functionsOf(world);
  proxy = await tcpProxy(world.db.url);
});
afterEach(async () => {
  await functions.stop();
  await proxy.close();
  await world.stop();
});

const relaying = ({ url }: LocalQueue) => ({
  RELAYBOX_DATABASE_URL: proxy.url,
  RELAYBOX_DESTINATIONS: JSON.stringify({ orders: { type: 'sqs', url } }),
  RELAYBOX_LEASE_SECONDS: '2',
});
const sorted = (values: readonly unknown[]) => values.map(Number).sort((a, b) => a - b);
const ingest = (fates: readonly Fate[]) =>
  world.db.inbox.ingest(fates.map((fate) => inboxRow({ payload: JSON.stringify(fate) })));

/** Messages of which a few end their commit in doubt: it was not done, or it was, and there is no answer. */
function doubtful(from: number): readonly Fate[] {
  const places: readonly Place[] = ['uncommitted', 'unanswered'];
  return Array.from({ length: 40 }, (_, i): Fate => {
    const at = i % 10 === 5 ? places[Math.floor(i / 10) % 2] : undefined;
    return { n: from + i, takesMs: 40, ...(at && { at }) };
  });
}

describe('a database that ends all sessions at once, again and again', () => {
  it('between COMMIT and its answer, too: nothing is lost, nothing is done twice, no retry of a publish is used up', async () => {
    const { db } = world;
    const queue = await world.queue('orders', { visibilitySeconds: 1 });
    const [consumed, handled] = [doubtful(0), doubtful(40)];
    await db.add(
      consumed.map((payload) => ({ destination: 'orders', messageType: 'order.placed', payload })),
    );
    await ingest(handled);
    const handling = {
      MESSAGE_TYPE: 'order.placed',
      RELAYBOX_MESSAGE_LEASE_SECONDS: '1',
      RELAYBOX_LEASE_MARGIN_SECONDS: '1',
    };
    await Promise.all([
      functions.add('relays', { concurrency: 2, env: relaying(queue) }),
      functions.add('consumes', { concurrency: 2 }),
      functions.add('handles', { concurrency: 2, timeoutMs: engine.shortMs, env: handling }),
    ]);
    functions.sweep('relays', 2);
    functions.sweep('handles', 2);
    functions.poll('consumes', queue, { concurrency: 2, batchSize: 5 });
    for (const done of [4, 16, 30, 44, 60]) {
      await until(
        () => db.effects.all(),
        ({ length }) => length >= done,
        60_000,
      );
      expect(await db.endSessions()).toBeGreaterThan(0);
    }
    await until(
      () => db.count('inbox', { state: 2 }),
      (count) => count === 40,
      60_000,
    );
    await until(
      () => world.states(),
      (states) => states[2] === 40,
      60_000,
    );
    await until(
      () => world.sqs.depth(queue),
      ({ ready, delayed, inFlight }) => ready + delayed + inFlight === 0,
      60_000,
    );
    const numbers = [...consumed, ...handled].map(({ n }) => n);
    expect(sorted(await db.effects.all())).toEqual(numbers);
    const after = await db.rows('outbox', { destination: 'after' }, { columns: ['payload'] });
    expect(sorted(after.map(({ payload }) => payload))).toEqual(numbers);
    expect(await db.count('receipts')).toBe(40);
    expect(await db.count('outbox', { retry_count: not(0) })).toBe(0);
    expectPointsMet(functions, [...consumed, ...handled]);
  }, 180_000);
});

describe('a database that is away for a while, twice', () => {
  it('uses up no attempt of the messages in hand: with the database they are given back, and done once', async () => {
    const { db } = world;
    const fates = Array.from({ length: 4 }, (_, n): Fate => ({ n, breaks: 2 }));
    await ingest(fates);
    await functions.add('rides-out', { timeoutMs: 60_000, env: { RELAYBOX_DATABASE_URL: proxy.url } });
    functions.sweep('rides-out');
    for (const time of [1, 2]) {
      await until(
        () => functions.met().size,
        (met) => met === 4 * time,
        60_000,
      );
      proxy.down();
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      proxy.heal();
    }
    await until(
      () => db.count('inbox', { processed_at_utc: null }),
      (left) => left === 0,
      60_000,
    );
    expect((await db.effects.all()).sort()).toEqual(fates.map(({ n }) => `${n}, attempt 1`));
    expect(await db.count('inbox', { state: 2 })).toBe(4);
  }, 120_000);

  it('costs a relay nothing but time: what was on the wire is sent again at most, and no retry is used up', async () => {
    const { db } = world;
    const queue = await world.queue('orders');
    const message = (n: number) => ({ destination: 'orders', messageType: 'order.placed', payload: n });
    await functions.add('relays', { env: relaying(queue) });
    for (const time of [1, 2]) {
      await db.add(Array.from({ length: 30 }, (_, n) => message(30 * time + n)));
      // The database goes while a batch is on the wire, so that the answer can't be written.
      const gone = new Promise<void>((resolve) => {
        const cut = async (): Promise<'go on'> => {
          proxy.down();
          resolve();
          return 'go on';
        };
        world.gate.inject({ fault: { kind: 'hold', when: 'after', until: cut }, times: 1 });
      });
      if (time === 1) functions.sweep('relays');
      await gone;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      proxy.heal();
      await until(
        () => world.states(),
        (states) => states[2] === 30 * time,
        60_000,
      );
    }
    expect(new Set(await world.sqs.bodies(queue)).size).toBe(60);
    expect(await db.count('outbox', { retry_count: not(0) })).toBe(0);
  }, 120_000);
});
