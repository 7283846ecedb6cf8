import { afterEach, beforeEach, expect, it } from 'vitest';
import { silent } from '../../shared/delivery/telemetry.ts';
import type { OutgoingMessage } from '../../shared/message/message.ts';
import type { Publisher } from '../../shared/publish/publisher.ts';
import type { OutboxStore } from '../../shared/store/outbox-store.ts';
import { keysByBucket } from '../support/engine/outbox-harness.ts';
import { createRelayWorld, quick, type RelayWorld } from '../support/engine/relay-world.ts';
import { until } from '../support/until.ts';

let world: RelayWorld;
beforeEach(async () => {
  world = await createRelayWorld();
});
afterEach(() => world.stop());

it("a read that is slow does not pass a key's freed follower: its new message waits for it", async () => {
  const [key, other] = await twoKeysOfOneBucket();
  const message = (partitionKey: string, n: number) => ({
    destination: 'orders',
    messageType: 'order.changed',
    payload: n,
    partitionKey,
  });
  await world.db.add([message(key, 1), message(key, 2)]);

  const sent: string[] = [];
  let failing = true;
  let onFirst = async (): Promise<void> => undefined;
  const publisher: Publisher<OutgoingMessage> = {
    limits: { entries: 10, callBytes: 1e6, ordered: true },
    prepare: (entry) => ({ entry, bytes: 100 }),
    async send(entries) {
      if (failing) return entries.map(() => ({ kind: 'failed', reason: 'not yet' }));
      if (entries.some((entry) => entry.payload === '1')) await onFirst();
      sent.push(...entries.filter((entry) => entry.partitionKey === key).map((entry) => entry.payload));
      return entries.map(() => ({ kind: 'published' }));
    },
    classify: (error) => ({ kind: 'failed', reason: String(error) }),
  };
  world.destination('orders', publisher as Publisher);
  const scheduled = { ...quick, mode: 'scheduled' } as const;

  // The head fails and waits; a read meets its follower, which is set held.
  await world.relay(scheduled).run(10_000);
  await until(
    () => world.db.count('outbox', { payload: '2', held: true }),
    (held) => held === 1,
  );
  failing = false;
  // A message of the other key moves the bucket's cursor past the follower…
  await world.db.add([message(other, 1)]);
  // …and while the head is on the wire, the key's third message is committed.
  onFirst = async () => {
    onFirst = async () => undefined;
    await world.db.add([message(key, 3)]);
  };
  await new Promise((resolve) => setTimeout(resolve, 300));
  await world.relay(scheduled, silent, withSlowReadAhead).run(10_000);
  await world.relay(scheduled).run(10_000);
  expect(sent).toEqual(['1', '2', '3']);
});

it('a message that commits late is not passed by the next one of its key, though others of its bucket went before', async () => {
  const [key, other] = await twoKeysOfOneBucket();
  const message = (partitionKey: string, n: number) => ({
    destination: 'orders',
    messageType: 'order.changed',
    payload: n,
    partitionKey,
  });
  const sent: string[] = [];
  const late = await world.db.begin();
  await late.add([message(key, 1)]);
  await world.db.add([1, 2, 3].map((n) => message(other, n)));
  world.destination('orders', {
    limits: { entries: 10, callBytes: 1e6, ordered: true },
    prepare: (entry) => ({ entry, bytes: 100 }),
    async send(entries) {
      for (const entry of entries as OutgoingMessage[]) {
        if (entry.partitionKey === key) sent.push(entry.payload);
        else if (entry.payload === '1') {
          // The key's writers serialise: its second message is added once the first has committed.
          await late.commit();
          await world.db.add([message(key, 2)]);
        }
      }
      return entries.map(() => ({ kind: 'published' }));
    },
    classify: (error) => ({ kind: 'failed', reason: String(error) }),
  });
  await world.relay({ ...quick, mode: 'scheduled', batchSize: 1 }).run();
  expect(sent).toEqual(['1', '2']);
});

/** Every read after the first is as slow as a busy server can make it: it begins only after the settle beside it. */
function withSlowReadAhead(store: OutboxStore): OutboxStore {
  let reads = 0;
  let settled = (): void => undefined;
  const afterSettle = new Promise<void>((resolve) => {
    settled = resolve;
  });
  return new Proxy(store, {
    get(target, name) {
      if (name === 'read') {
        return async (...args: Parameters<OutboxStore['read']>) => {
          if (++reads === 2) {
            await Promise.race([afterSettle, new Promise((resolve) => setTimeout(resolve, 500))]);
          }
          return await target.read(...args);
        };
      }
      if (name === 'settle') {
        return async (...args: Parameters<OutboxStore['settle']>) => {
          const result = await target.settle(...args);
          settled();
          return result;
        };
      }
      const value = Reflect.get(target, name) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

async function twoKeysOfOneBucket(): Promise<[string, string]> {
  for (const [key, other] of (await keysByBucket(world.db, 'k', 200)).values()) {
    if (key !== undefined && other !== undefined) return [key, other];
  }
  throw new Error('of 200 keys no two are in one of 64 buckets');
}
