import assert from 'node:assert/strict';
import type { OutboxRow } from '../../message/message.ts';
import type { ClaimedOutboxMessage, FailedAttempt, OutboxStore } from '../../store/outbox-store.ts';
import { type CaseOf, random, sleep } from '../case.ts';
import { ids, KEEP, type OutboxHarness, outboxRow, sorted } from './harness.ts';

const LANES = ['orders', 'events', 'emails'];

/** Who holds a message, for how long that worker may trust it, and what was published in which order. */
interface Ledger {
  readonly rows: readonly OutboxRow[];
  readonly inHand: Map<string, { worker: number; trustUntil: number }>;
  readonly published: string[];
  done: number;
}

/** Many small steps of several workers at once; the ledger is checked at each. */
export const concurrency: readonly CaseOf<OutboxHarness>[] = [
  {
    promise: 5,
    name: 'three workers through thousands of steps: nobody holds what another holds, each message is done once, keys in order',
    async body({ store, another, inspect }) {
      const rows = Array.from({ length: 1200 }, (_, n) =>
        outboxRow({
          destination: LANES[n % 3] ?? 'orders',
          partitionKey: n % 4 === 0 ? null : `k${n % 37}`,
        }),
      );
      const ledger: Ledger = { rows, inHand: new Map(), published: [], done: 0 };
      await store.add(rows.slice(0, 400));
      await Promise.all([
        ...[store, another, store].map((worker, n) => work(worker, n, ledger)),
        (async () => {
          for (let at = 400; at < rows.length; at += 25) await store.add(rows.slice(at, at + 25));
        })(),
      ]);
      assert.deepEqual(sorted(ledger.published), sorted(ids(rows)), 'each message is done exactly once');
      for (const lane of LANES) {
        for (let key = 0; key < 37; key++) {
          const of = rows.filter((row) => row.destination === lane && row.partitionKey === `k${key}`);
          const places = of.map(({ id }) => ledger.published.indexOf(id));
          assert.deepEqual(
            places,
            [...places].sort((a, b) => a - b),
            `key k${key} of "${lane}" in order`,
          );
        }
      }
      for (const { id } of rows.slice(0, 50)) assert.equal((await inspect(id))?.state, 2);
    },
  },
];

async function work(store: OutboxStore, worker: number, ledger: Ledger): Promise<void> {
  const roll = random(worker + 1);
  const end = performance.now() + 60_000;
  while (ledger.done < ledger.rows.length) {
    assert.ok(performance.now() < end, `no end: ${ledger.done} of ${ledger.rows.length} are done`);
    const lanes = await store.dueLanes();
    const lane = lanes[Math.floor(roll() * lanes.length)];
    if (!lane) {
      await sleep(10);
      continue;
    }
    await cycle(store, worker, ledger, lane.destination, roll);
  }
}

async function cycle(
  store: OutboxStore,
  worker: number,
  ledger: Ledger,
  destination: string,
  roll: () => number,
): Promise<void> {
  const abandon = roll() < 0.05;
  const leaseMs = abandon ? 60 : 20_000;
  // Trusted from before the request, so never longer than the database grants it.
  const trustUntil = performance.now() + leaseMs;
  const lease = await store.lease({ destination, limit: 1 + Math.floor(roll() * 6), leaseMs });
  if (!lease) return;
  const { messages } = await store.read(lease, {
    limit: 1 + Math.floor(roll() * 15),
    maxBytes: 1_000_000,
  });
  for (const { id } of messages) {
    const holder = ledger.inHand.get(id);
    const now = performance.now();
    // What was read under a lease that is over may be another's by now, and nobody acts on it.
    if (trustUntil <= now) continue;
    assert.ok(
      !holder || holder.worker === worker || holder.trustUntil < now,
      `message ${id} is in the hands of workers ${holder?.worker} and ${worker}`,
    );
    ledger.inHand.set(id, { worker, trustUntil });
  }
  if (abandon) return;
  const published: ClaimedOutboxMessage[] = [];
  const failed: FailedAttempt[] = [];
  const cut = new Set<string>();
  for (const message of messages) {
    if (message.partitionKey !== null && cut.has(message.partitionKey)) continue;
    const dice = roll();
    if (dice < 0.85) {
      published.push(message);
      continue;
    }
    if (dice < 0.95) failed.push({ message, reason: 'refused', retryInSeconds: 0.01 });
    if (message.partitionKey !== null) cut.add(message.partitionKey);
  }
  const result = await store.settle(lease, { published, failed, rejected: [] }, KEEP);
  assert.deepEqual(result.lost, [], 'a lease that runs loses nothing');
  for (const { id } of messages) ledger.inHand.delete(id);
  ledger.published.push(...ids(published));
  ledger.done += published.length;
  await store.release(lease);
}
