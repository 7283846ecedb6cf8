import { DeleteMessageBatchCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LocalQueue } from '../../local/sqs.ts';
import { toRecord } from '../../local/triggers/queue.ts';
import { Deadline } from '../../shared/delivery/deadline.ts';
import { silent } from '../../shared/delivery/telemetry.ts';
import { handleDue } from '../../shared/inbox/handling.ts';
import { ingest } from '../../shared/inbox/ingest.ts';
import type { SqsRecord } from '../../shared/message/envelope/read.ts';
import { sqsClient } from '../../shared/publish/sqs.ts';
import { engine } from '../support/engine/engine.ts';
import { createRelayWorld, quick, type RelayWorld } from '../support/engine/relay-world.ts';
import { above, secondsFromNow } from '../support/engine/values.ts';
import { until } from '../support/until.ts';
import { LeaseAudit } from './lease-audit.ts';

const MESSAGES = engine.many;
const KEYS = 200;

describe("two applications' transactions and three relays at once, one in twenty sends failing", () => {
  let world: RelayWorld;
  beforeAll(async () => {
    world = await createRelayWorld();
  });
  afterAll(() => world.stop());

  it(`delivers all of ${MESSAGES} messages, each of ${KEYS} keys in order, over FIFO and standard`, async () => {
    const fifo = await world.queue('fifo', { fifo: true });
    const standard = await world.queue('standard');
    let sends = 0;
    world.gate.inject({ fault: { kind: 'status', status: 500 }, match: () => ++sends % 20 === 0 });
    const audit = new LeaseAudit();
    const relays = [1, 2, 3].map(() =>
      world.relay({ ...quick, batchSize: 100 }, silent, (store) => audit.watch(store)),
    );
    const running = relays.map((relay) => relay.run(120_000));
    await Promise.all([produce(world, 0), produce(world, 1)]);
    await until(
      () => world.states(),
      (states) => states[2] === MESSAGES,
      100_000,
    );
    for (const relay of relays) relay.abort();
    await Promise.all(running);
    expect(audit.leases).toBeGreaterThan(0);
    expect(audit.overlaps()).toEqual([]);
    expect(await world.states()).toEqual({ 2: MESSAGES });
    expect(await world.db.count('leases', { locked_until_utc: above(secondsFromNow(0)) })).toBe(0);

    for (const queue of [fifo, standard]) {
      const byKey = numbersByKey(await world.sqs.bodies(queue));
      expect([...byKey.values()].flatMap((list) => [...new Set(list)])).toHaveLength(MESSAGES / 2);
      for (const list of byKey.values()) {
        // A repeat after a lost answer is allowed on a standard queue; a later message before an earlier one's first arrival never is.
        const first = [...new Set(list)];
        expect(first).toEqual(first.toSorted((a, b) => a - b));
      }
    }
    await handleFifo(world, fifo);
  }, 400_000);
});

/** Takes the FIFO queue's messages in, and handles them by two functions at once, one in twenty attempts failing. */
async function handleFifo(world: RelayWorld, queue: LocalQueue): Promise<void> {
  const { db } = world;
  const { inbox: store } = db.instance({ max: 12 });
  let attempts = 0;
  let taken = 0;
  const handle = () =>
    handleDue({
      store,
      messageType: 'order.changed',
      retry: { firstSeconds: 0.05, factor: 1, maxSeconds: 0.05 },
      deadline: Deadline.in(60_000),
      batchSize: 100,
      bind: (transaction) => ({ tx: transaction.tx, outbox: undefined }),
      handler: async (message, { tx }) => {
        await db.effects.write(tx, JSON.stringify(message.payload));
        if (++attempts % 20 === 0) throw new Error('one in twenty');
      },
    });
  const work = async () => {
    do await handle();
    while (taken < MESSAGES / 2 || (await db.count('inbox', { processed_at_utc: null })) > 0);
  };
  const take = async () => {
    taken = await drainQueue(queue, async (records) => {
      const { batchItemFailures } = await ingest(records, { store, source: 'test', consumer: '' });
      expect(batchItemFailures).toEqual([]);
    });
  };
  await Promise.all([take(), work(), work()]);
  const byKey = numbersByKey(await db.effects.all());
  expect(byKey.size).toBe(KEYS);
  // Exactly once and in order, though one attempt in twenty wrote its effect and then failed.
  for (const ns of byKey.values()) {
    expect(ns).toEqual(Array.from({ length: ns.length }, (_, i) => 2 * (i + 1)));
  }
  expect([...byKey.values()].flat()).toHaveLength(MESSAGES / 2);
  expect(attempts).toBeGreaterThan(MESSAGES / 2);
  expect(await db.count('inbox')).toBe(MESSAGES / 2);
  expect(await db.count('inbox', { state: 2 })).toBe(MESSAGES / 2);
  expect(await db.count('keys')).toBe(0);
}

/** Receives until the queue is empty, deleting what was taken in; answers how many. */
async function drainQueue(
  queue: LocalQueue,
  takeIn: (records: readonly SqsRecord[]) => Promise<void>,
): Promise<number> {
  const client = sqsClient({ endpoint: new URL(queue.url).origin });
  let taken = 0;
  for (;;) {
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({
        QueueUrl: queue.url,
        MaxNumberOfMessages: 10,
        MessageAttributeNames: ['All'],
        MessageSystemAttributeNames: ['All'],
      }),
    );
    if (Messages.length === 0) break;
    await takeIn(Messages.map((message) => toRecord(message, queue)));
    await client.send(
      new DeleteMessageBatchCommand({
        QueueUrl: queue.url,
        Entries: Messages.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle })),
      }),
    );
    taken += Messages.length;
  }
  client.destroy();
  return taken;
}

/** One application: transactions of ten messages each, a key's writers serialised by the key belonging to one application. */
async function produce(world: RelayWorld, app: number): Promise<void> {
  const perApp = MESSAGES / 2;
  const counters = new Map<string, number>();
  for (let made = 0; made < perApp; made += 50) {
    await world.db.add(
      Array.from({ length: 50 }, (_, i) => {
        const key = `key-${app}-${(made + i) % (KEYS / 2)}`;
        const n = (counters.get(key) ?? 0) + 1;
        counters.set(key, n);
        return {
          destination: n % 2 === 0 ? 'fifo' : 'standard',
          messageType: 'order.changed',
          payload: { key, n },
          partitionKey: key,
        };
      }),
    );
  }
}

/** The numbers of each key's messages, in the order of the payloads. */
function numbersByKey(payloads: readonly string[]): ReadonlyMap<string, readonly number[]> {
  const byKey = new Map<string, number[]>();
  for (const payload of payloads) {
    const { key, n } = JSON.parse(payload) as { key: string; n: number };
    const numbers = byKey.get(key);
    if (numbers) numbers.push(n);
    else byKey.set(key, [n]);
  }
  return byKey;
}
