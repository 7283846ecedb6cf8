import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { operate } from '../../shared/operations/operate.ts';
import { createRelayWorld, quick, type RelayWorld } from '../support/engine/relay-world.ts';
import { secondsFromNow } from '../support/engine/values.ts';
import { until } from '../support/until.ts';

let world: RelayWorld;
beforeEach(async () => {
  world = await createRelayWorld();
});
afterEach(() => world.stop());

const message = (n: number) => ({ destination: 'orders', messageType: 'order.placed', payload: { n } });

/** Lets the first call to the broker hang until told. */
function holdFirstCall() {
  let letGo: () => void = () => undefined;
  let hit: () => void = () => undefined;
  const until = new Promise<'go on'>((resolve) => {
    letGo = () => resolve('go on');
  });
  const held = new Promise<void>((resolve) => {
    hit = resolve;
  });
  world.gate.inject({
    fault: { kind: 'hold', when: 'before', until: () => until },
    times: 1,
    onHit: () => hit(),
  });
  return { held, letGo };
}

describe("a person's word", () => {
  it('a pause that is set while a batch is on the wire holds, though the batch succeeds', async () => {
    const queue = await world.queue('orders');
    await world.db.add(Array.from({ length: 30 }, (_, n) => message(n)));
    const wire = holdFirstCall();
    const relay = world.relay({ ...quick, batchSize: 10, parallelism: 1 });
    const running = relay.run(15_000);
    await wire.held;
    await operate(world.db.operations, {
      command: 'pause',
      destination: 'orders',
      by: 'ann',
      reason: 'deploy',
    });
    wire.letGo();
    await until(
      () => world.states(),
      (states) => (states[2] ?? 0) >= 10,
    );
    // What had been read by then may still go; nothing new is read.
    await new Promise((resolve) => setTimeout(resolve, 800));
    const afterPause = (await world.states())[2] ?? 0;
    expect(afterPause).toBeLessThanOrEqual(20);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect((await world.states())[2]).toBe(afterPause);
    const columns = ['paused_by', 'paused_reason'] as const;
    expect(await world.db.rows('lanes', {}, { columns })).toEqual([
      { paused_by: 'ann', paused_reason: 'deploy' },
    ]);
    relay.abort();
    await running;
    expect((await world.sqs.depth(queue)).ready).toBe(afterPause);
  }, 30_000);

  it('a discard of a message on the wire is not undone by the settle on its way', async () => {
    await world.queue('orders');
    const [id] = await world.db.add([message(1)]);
    const wire = holdFirstCall();
    const relay = world.relay({ ...quick, leaseMs: 2_000 });
    const running = relay.run(10_000);
    await wire.held;
    // The person takes the bucket's lease once the relay's has run out, as every write to an unfinished row must.
    const [place] = await relay.store.bucketsOf([id as string]);
    const bucket = place?.bucket as number;
    const lease = await until(
      () => relay.store.lease({ destination: 'orders', limit: 1, leaseMs: 5_000, buckets: [bucket] }),
      (taken) => taken !== undefined,
    );
    expect(lease?.token).not.toBe(randomUUID());
    const discarded = { state: 4, processed_at_utc: secondsFromNow(0), last_error: 'by ann' };
    await world.db.update('outbox', discarded, { id: id as string, state: 0 });
    wire.letGo();
    await new Promise((resolve) => setTimeout(resolve, 500));
    relay.abort();
    await running;
    const columns = ['state', 'last_error'] as const;
    expect(await world.db.rows('outbox', {}, { columns })).toEqual([{ state: 4, last_error: 'by ann' }]);
  }, 30_000);
});
