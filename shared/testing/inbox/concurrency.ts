import assert from 'node:assert/strict';
import type { ClaimedInboxMessage, InboxStore, NewInboxRow } from '../../store/inbox-store.ts';
import { type CaseOf, random, sleep } from '../case.ts';
import { sorted } from '../outbox/harness.ts';
import { begin, claim, externalIds, fail, type InboxHarness, inboxRow } from './harness.ts';

const TYPES = ['order.placed', 'order.cancelled'];

interface Ledger {
  readonly rows: readonly NewInboxRow[];
  /** Messages and keys in somebody's hands, and for how long that worker may trust it. */
  readonly inHand: Map<string, { worker: number; trustUntil: number }>;
  readonly committed: string[];
}

/** Many small steps of several workers at once; the ledger is checked at each. */
export const concurrency: readonly CaseOf<InboxHarness>[] = [
  {
    promise: 2,
    name: 'three workers through thousands of steps: nobody holds what another holds, each effect is there once, keys in order',
    async body(harness) {
      const { store, another, effects } = harness;
      const rows = Array.from({ length: 400 }, (_, n) =>
        inboxRow({
          messageType: TYPES[n % 2] ?? '',
          partitionKey: n % 3 === 0 ? null : `k${n % 17}`,
          maxRetries: 1000,
        }),
      );
      const ledger: Ledger = { rows, inHand: new Map(), committed: [] };
      await Promise.all([
        ...[store, another, store].map((worker, n) => work(harness, worker, n, ledger)),
        (async () => {
          // Every batch comes twice, as queues deliver.
          for (let at = 0; at < rows.length; at += 20) {
            await store.ingest(rows.slice(at, at + 20));
            await another.ingest(rows.slice(at, at + 20));
          }
        })(),
      ]);
      assert.deepEqual(
        sorted([...(await effects())]),
        sorted(externalIds(rows)),
        'each effect is there once',
      );
      for (let key = 0; key < 17; key++) {
        const places = rows
          .filter(({ partitionKey }) => partitionKey === `k${key}`)
          .map(({ externalMessageId }) => ledger.committed.indexOf(externalMessageId));
        assert.deepEqual(
          places,
          [...places].sort((a, b) => a - b),
          `key k${key} in order`,
        );
      }
    },
  },
];

async function work(harness: InboxHarness, store: InboxStore, worker: number, ledger: Ledger): Promise<void> {
  const roll = random(worker + 1);
  const end = performance.now() + 60_000;
  while (ledger.committed.length < ledger.rows.length) {
    assert.ok(
      performance.now() < end,
      `no end: ${ledger.committed.length} of ${ledger.rows.length} are handled`,
    );
    const abandon = roll() < 0.04;
    const leaseMs = abandon ? 60 : 20_000;
    const trustUntil = performance.now() + leaseMs;
    const { messages } = await claim(store, {
      messageType: TYPES[Math.floor(roll() * 2)] ?? '',
      limit: 1 + Math.floor(roll() * 8),
      leaseMs,
    });
    if (messages.length === 0) await sleep(5);
    for (const message of messages) hold(ledger, worker, message, trustUntil);
    if (abandon) continue;
    for (const message of messages) await step(harness, store, message, roll(), ledger);
  }
}

/** What may be in one hand only: a message, and a key. */
function held({ externalMessageId, source, partitionKey }: ClaimedInboxMessage): string[] {
  return partitionKey === null ? [externalMessageId] : [externalMessageId, `key ${source}/${partitionKey}`];
}

function hold(ledger: Ledger, worker: number, message: ClaimedInboxMessage, trustUntil: number): void {
  const now = performance.now();
  for (const thing of held(message)) {
    const holder = ledger.inHand.get(thing);
    assert.ok(
      !holder || holder.trustUntil < now,
      `${thing} is in the hands of workers ${holder?.worker} and ${worker}`,
    );
    if (trustUntil > now) ledger.inHand.set(thing, { worker, trustUntil });
  }
}

async function step(
  harness: InboxHarness,
  store: InboxStore,
  message: ClaimedInboxMessage,
  dice: number,
  ledger: Ledger,
): Promise<void> {
  // Out of the ledger's hands before the write that lets go of it: from then on another may have it.
  for (const thing of held(message)) ledger.inHand.delete(thing);
  if (dice < 0.1) {
    assert.deepEqual((await fail(store, message, 0.01)).lost, []);
    return;
  }
  if (dice < 0.15) {
    assert.deepEqual((await store.release([message])).lost, []);
    return;
  }
  const transaction = await begin(store);
  await harness.write(transaction.tx, message.externalMessageId);
  const marked = await store.markProcessed(transaction, message);
  assert.ok(marked, 'a lease that runs loses nothing');
  if (dice < 0.2) {
    await transaction.rollback();
    await store.release([message]);
    return;
  }
  // Noted before the commit: the next of the key can only be noted after it.
  ledger.committed.push(message.externalMessageId);
  await transaction.commit();
}
