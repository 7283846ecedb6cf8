import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { OutgoingMessage } from '../../shared/message/message.ts';
import { classifyEntry, classifyError } from '../../shared/publish/classify.ts';
import type { Publisher } from '../../shared/publish/publisher.ts';
import { createRelayWorld, quick, type RelayWorld } from '../support/engine/relay-world.ts';
import { not } from '../support/engine/values.ts';
import { until } from '../support/until.ts';

let world: RelayWorld;
beforeEach(async () => {
  world = await createRelayWorld();
});
afterEach(() => world.stop());

/** A broker that answers each entry but those of one payload, which fail by its own fault. */
function entriesFail(payload: string, arrived: unknown[]): Publisher {
  const publisher: Publisher<OutgoingMessage> = {
    limits: { entries: 10, callBytes: 1_000_000, ordered: false },
    prepare: (entry) => ({ entry, bytes: 100 }),
    send: async (entries) =>
      entries.map((entry) => {
        if (entry.payload === payload) return classifyEntry('InternalError', 'unknown', false, 'queue');
        arrived.push(entry.payload);
        return { kind: 'published' };
      }),
    classify: (error) => classifyError(error, 'queue'),
  };
  return publisher as Publisher;
}

const message = (payload: unknown, more: { maxRetries?: number; partitionKey?: string } = {}) => ({
  destination: 'orders',
  messageType: 'order.placed',
  payload,
  ...more,
});

describe('a message that makes the broker answer 500 each time', () => {
  it('among good ones: the lane reopens, the good ones arrive, the message ends Failed', async () => {
    const queue = await world.queue('orders');
    world.gate.inject({
      fault: { kind: 'status', status: 500 },
      match: (request) => request.body.includes('poison'),
    });
    const good = Array.from({ length: 25 }, (_, n) => message({ n }));
    const [poison] = await world.db.add([message('poison', { maxRetries: 2 }), ...good]);
    const relay = world.relay(quick);
    const running = relay.run(25_000);
    await until(
      () => world.states(),
      (states) => states[2] === 25,
    );
    // It has to be proved guilty at each retry: others must come by.
    const more = setInterval(() => void world.db.add([message('more')]).catch(() => undefined), 100);
    try {
      await until(
        () => world.db.count('outbox', { id: poison as string, state: 3 }),
        (failed) => failed === 1,
        20_000,
      );
    } finally {
      clearInterval(more);
    }
    await until(
      () => world.states(),
      (states) => states[0] === undefined && states[3] === 1,
    );
    relay.abort();
    await running;
    const [lane] = await world.db.rows('lanes');
    expect(lane?.failures ?? 0).toBe(0);
    expect(lane?.open_until_utc ?? null).toBeNull();
    const bodies = await world.sqs.bodies(queue);
    expect(bodies).not.toContain('"poison"');
    expect(bodies.filter((body) => body.includes('"n"'))).toHaveLength(25);
  }, 40_000);

  it('so does one that fails alone of its batch, by the fault of the broker that answered the others', async () => {
    const arrived: unknown[] = [];
    world.destination('orders', entriesFail('"poison"', arrived));
    const good = Array.from({ length: 25 }, (_, n) => message({ n }));
    const [poison] = await world.db.add([message('poison', { maxRetries: 2 }), ...good]);
    const relay = world.relay(quick);
    const running = relay.run(25_000);
    const more = setInterval(() => void world.db.add([message('more')]).catch(() => undefined), 100);
    try {
      await until(
        () => world.db.count('outbox', { id: poison as string, state: 3 }),
        (failed) => failed === 1,
        20_000,
      );
    } finally {
      clearInterval(more);
    }
    await until(
      () => world.states(),
      (states) => states[0] === undefined && states[3] === 1,
    );
    relay.abort();
    await running;
    expect(arrived.filter((payload) => String(payload).includes('"n"'))).toHaveLength(25);
    expect(await world.db.count('outbox', { retry_count: not(0), state: 2 })).toBe(0);
  }, 40_000);

  it('more of them than a lane remembers, added one after the other, keep back nothing that came after them', async () => {
    const arrived: unknown[] = [];
    world.destination('orders', entriesFail('"poison"', arrived));
    await world.db.add(Array.from({ length: 40 }, () => message('poison')));
    await world.db.add(Array.from({ length: 40 }, (_, n) => message({ n })));
    const relay = world.relay({
      ...quick,
      retry: { firstSeconds: 60, factor: 1, maxSeconds: 60 },
      breaker: { firstSeconds: 0.05, factor: 2, maxSeconds: 0.2 },
    });
    const running = relay.run(45_000);
    await until(
      () => arrived.length,
      (count) => count === 40,
      40_000,
    );
    relay.abort();
    await running;
  }, 60_000);

  it('alone in its lane, it is not charged: nothing proves that it is not the broker', async () => {
    await world.queue('orders');
    world.gate.inject({ fault: { kind: 'status', status: 500 } });
    const [id] = await world.db.add([message('poison', { maxRetries: 0 })]);
    await world.relay(quick).run(2_000);
    const columns = ['state', 'retry_count'] as const;
    const rows = await world.db.rows('outbox', { id: id as string }, { columns });
    expect(rows).toEqual([{ state: 0, retry_count: 0 }]);
  });
});

describe('no hostage', () => {
  it('a destination that nothing maps waits, visibly, and costs the others nothing', async () => {
    await world.queue('orders');
    await world.db.add([{ ...message(1), destination: 'nowhere' }, message(2)]);
    await world.relay({ ...quick, mode: 'scheduled' }).run(5_000);
    expect(await world.states()).toEqual({ 0: 1, 2: 1 });
    const [lane] = await world.db.rows('lanes', { destination: 'nowhere' });
    expect(lane?.last_error).toContain('nowhere');
    // Once it is mapped, the next probe finds it so.
    const queue = await world.queue('nowhere');
    const relay = world.relay(quick);
    const running = relay.run(10_000);
    await until(
      () => world.sqs.depth(queue),
      (depth) => depth.ready === 1,
    );
    relay.abort();
    await running;
  });

  it('what another program wrote too large for the transport ends Failed, and its batch goes', async () => {
    await world.queue('orders');
    const ids = await world.db.add([message(1), message(2), message(3)]);
    await world.db.update('outbox', { payload: 'x'.repeat(1_100_000) }, { id: ids[1] as string });
    await world.relay({ ...quick, mode: 'scheduled' }).run(5_000);
    expect(await world.states()).toEqual({ 2: 2, 3: 1 });
    const [failed] = await world.db.rows('outbox', { state: 3 });
    expect(failed?.last_error).toMatch(/1,?048,?576/);
  });

  it('a dead destination does not hold up a living one', async () => {
    const alive = await world.queue('alive');
    await world.queue('dead');
    world.gate.inject({ fault: { kind: 'reset' }, match: (request) => request.body.includes('/dead') });
    await world.db.add([
      ...Array.from({ length: 500 }, (_, n) => ({ ...message(n), destination: 'dead' })),
      ...Array.from({ length: 20 }, (_, n) => ({ ...message(n), destination: 'alive' })),
    ]);
    await world.relay({ ...quick, mode: 'scheduled' }).run(10_000);
    expect((await world.sqs.depth(alive)).ready).toBe(20);
    expect(await world.states()).toEqual({ 0: 500, 2: 20 });
  });
});
