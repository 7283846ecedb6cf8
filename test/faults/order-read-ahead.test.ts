import { afterEach, beforeEach, expect, it } from 'vitest';
import { Deadline } from '../../shared/delivery/deadline.ts';
import { silent } from '../../shared/delivery/telemetry.ts';
import type { OutgoingMessage } from '../../shared/message/message.ts';
import { runRelay } from '../../shared/outbox/relay.ts';
import { relayDefaults } from '../../shared/outbox/relay-options.ts';
import type { Publisher } from '../../shared/publish/publisher.ts';
import type { OutboxStore } from '../../shared/store/outbox-store.ts';
import { postgresOutbox } from '../../shared/store/postgres/producer.ts';
import { createRelayWorld, quick, type RelayWorld, until } from '../support/relay-world.ts';

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
  await world.add([message(key, 1), message(key, 2)]);

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
  const { store } = world.relay();
  const run = (over: OutboxStore) =>
    runRelay({
      store: over,
      destinations: new Map([['orders', publisher as Publisher]]),
      deadline: Deadline.in(10_000),
      signal: new AbortController().signal,
      telemetry: silent,
      options: { ...relayDefaults, ...quick, mode: 'scheduled' },
    });

  // The head fails and waits; a read meets its follower, which is set held.
  await run(store);
  await until(
    () => world.pool.query("SELECT held FROM outbox_messages WHERE payload = '2'"),
    ({ rows }) => rows[0]?.held === true,
  );
  failing = false;
  // A message of the other key moves the bucket's cursor past the follower…
  await world.add([message(other, 1)]);
  // …and while the head is on the wire, the key's third message is committed.
  onFirst = async () => {
    onFirst = async () => undefined;
    await world.add([message(key, 3)]);
  };
  await new Promise((resolve) => setTimeout(resolve, 300));
  await run(withSlowReadAhead(store));
  await run(store);
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
  const late = await world.pool.connect();
  await late.query('BEGIN');
  await postgresOutbox().add(late, message(key, 1));
  await world.add([1, 2, 3].map((n) => message(other, n)));
  world.destination('orders', {
    limits: { entries: 10, callBytes: 1e6, ordered: true },
    prepare: (entry) => ({ entry, bytes: 100 }),
    async send(entries) {
      for (const entry of entries as OutgoingMessage[]) {
        if (entry.partitionKey === key) sent.push(entry.payload);
        else if (entry.payload === '1') {
          // The key's writers serialise: its second message is added once the first has committed.
          await late.query('COMMIT');
          late.release();
          await world.add([message(key, 2)]);
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
  const { rows } = await world.pool.query(
    `SELECT array_agg(key) AS keys FROM (SELECT 'k' || n AS key, hashtextextended('k' || n, 0) & 63 AS bucket FROM generate_series(1, 200) AS n) AS k
     GROUP BY bucket HAVING count(*) > 1 LIMIT 1`,
  );
  return rows[0].keys.slice(0, 2);
}
