import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OutgoingMessage } from '../../shared/message/message.ts';
import type { Publisher } from '../../shared/publish/publisher.ts';
import { createRelayWorld, quick, type RelayWorld } from '../support/engine/relay-world.ts';
import { not } from '../support/engine/values.ts';

/** A broker in good health that takes its time: what it was sent, and the slowest that it may be. */
function slowBroker(ms: () => number): { publisher: Publisher; sent: string[] } {
  const sent: string[] = [];
  const publisher: Publisher<OutgoingMessage> = {
    limits: { entries: 10, callBytes: 1_000_000, ordered: true },
    prepare: (message) => ({ entry: message, bytes: message.payload.length }),
    async send(entries, { signal }) {
      await sleep(ms(), undefined, { signal });
      sent.push(...entries.map(({ id }) => id));
      return entries.map(() => ({ kind: 'published' }));
    },
    classify: () => ({ kind: 'unavailable', reason: 'never' }),
  };
  return { publisher: publisher as Publisher, sent };
}

describe('an invocation that ends while a healthy broker is at work', () => {
  let world: RelayWorld;
  beforeAll(async () => {
    world = await createRelayWorld();
  });
  afterAll(() => world.stop());

  const add = (count: number, maxRetries: number) =>
    world.db.add(
      Array.from({ length: count }, (_, n) => ({
        destination: 'orders',
        messageType: 'order.placed',
        payload: { n },
        maxRetries,
      })),
    );
  const options = { ...quick, mode: 'scheduled' as const, leaseMs: 30_000, batchSize: 40, parallelism: 1 };
  const opened = () => world.db.count('lanes', { failures: not(0) });

  it('opens no lane and charges no message, and says that work is left, until all is done', async () => {
    const { publisher, sent } = slowBroker(() => 60 + Math.random() * 60);
    world.destination('orders', publisher);
    await add(800, 0);
    const relay = world.relay(options);
    for (let invocations = 1; ; invocations++) {
      const { workLeft } = await relay.run(1_500);
      expect(await opened()).toBe(0);
      const states = await world.states();
      if (!workLeft && states[0] === undefined) break;
      expect({ workLeft, states }).toMatchObject({ workLeft: true });
      expect(invocations).toBeLessThan(60);
    }
    expect(await world.states()).toEqual({ 2: 800 });
    expect(new Set(sent).size).toBe(800);
  }, 120_000);

  it('goes on to its end where a batch takes most of a lease: the next lease is no longer', async () => {
    const { publisher } = slowBroker(() => 600);
    world.destination('orders', publisher);
    await world.db.clear('outbox');
    await add(80, 0);
    const relay = world.relay({ ...options, leaseMs: 2_000, batchSize: 20 });
    expect(await relay.run(25_000)).toMatchObject({ settled: 80, workLeft: false });
  }, 60_000);

  it('even where each call is cut off, nothing is held against it', async () => {
    const { publisher } = slowBroker(() => 5_000);
    world.destination('orders', publisher);
    await world.db.clear('outbox');
    await add(1, 0);
    const relay = world.relay(options);
    for (let invocation = 0; invocation < 3; invocation++) {
      expect(await relay.run(700)).toMatchObject({ settled: 0, workLeft: true });
      expect([await opened(), await world.states()]).toEqual([0, { 0: 1 }]);
    }
    const { publisher: quicker } = slowBroker(() => 1);
    world.destination('orders', quicker);
    expect(await relay.run(5_000)).toMatchObject({ settled: 1 });
  }, 60_000);
});
