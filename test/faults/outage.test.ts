import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRelayWorld, quick, type RelayWorld, until } from '../support/relay-world.ts';

/** Ways of being down: nobody listens, or somebody does who answers 503, which might as well be one message's fault. */
const outages = [
  { how: 'refuses connections', waiting: 10_000 },
  { how: 'answers 503', waiting: 2_000 },
];

describe.each(outages)('a broker that $how, with $waiting waiting messages', ({ how, waiting }) => {
  let world: RelayWorld;
  beforeAll(async () => {
    world = await createRelayWorld();
  });
  afterAll(() => world.stop());

  async function goDown(): Promise<() => Promise<void>> {
    if (how === 'answers 503') {
      const lift = world.gate.inject({ fault: { kind: 'status', status: 503 } });
      return async () => lift();
    }
    await world.gate.down();
    return () => world.gate.up();
  }

  // Scaled by 100: an outage of 3 s stands for five minutes, breaker pauses of 0.01 … 0.6 s for 1 … 60 s.
  const scaled = { ...quick, batchSize: 100, breaker: { firstSeconds: 0.01, factor: 2, maxSeconds: 0.6 } };

  it('rewrites no row, uses up no retry, and delivery resumes within the probe interval', async () => {
    const queue = await world.queue('orders');
    const comeBack = await goDown();
    for (let n = 0; n < waiting / 1000; n++) {
      await world.add(
        Array.from({ length: 1000 }, (_, i) => ({
          destination: 'orders',
          messageType: 'order.placed',
          payload: { n: n * 1000 + i },
          maxRetries: 3,
        })),
      );
    }
    const before = await rowVersions(world);
    const relay = world.relay(scaled);
    const running = relay.run(40_000);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(await rowVersions(world)).toEqual(before);
    const [lane] = (await world.pool.query('SELECT * FROM outbox_lanes')).rows;
    expect(lane.failures).toBeGreaterThan(3);

    await comeBack();
    const back = Date.now();
    await until(
      () => world.sqs.depth(queue),
      (depth) => depth.ready > 1,
    );
    // The pause of 0.6 s, the poll, and a machine that is busy with other tests.
    expect(Date.now() - back).toBeLessThan(3_000);
    await until(
      () => world.states(),
      (states) => states[2] === waiting,
      30_000,
    );
    relay.abort();
    await running;
    expect(await world.states()).toEqual({ 2: waiting });
    const [sum] = (await world.pool.query('SELECT sum(retry_count)::int AS retries FROM outbox_messages'))
      .rows;
    expect(sum.retries).toBe(0);
    expect((await world.sqs.depth(queue)).ready).toBe(waiting);
  }, 60_000);
});

/** A digest of every row's version: any update, even one that changes nothing, shows. */
async function rowVersions(world: RelayWorld): Promise<unknown> {
  const { rows } = await world.pool.query(
    "SELECT count(*)::int, md5(string_agg(xmin::text || ctid::text || retry_count, ',' ORDER BY id)) FROM outbox_messages",
  );
  return rows[0];
}
