import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Cleanup } from '../cleanup.ts';
import { type LocalSystem, type SystemOptions, startSystem } from '../system.ts';
import { type Counting, openCounting } from './counting.ts';
import { Deliveries } from './deliveries.ts';
import { killRelayInMidBatch } from './kill-relay.ts';
import type { DemoOptions, Sabotage } from './options.ts';
import { type Placed, placeOrders } from './orders.ts';
import type { Progress } from './progress.ts';
import type { Outcome } from './report.ts';
import { tally, unfinished } from './tally.ts';

/** How long a day may take to settle after its last order. */
const settleMs = 60_000;

/** Runs the demo: a day on which everything goes wrong, and the count of what it left. */
export async function badDay(options: DemoOptions, cleanup: Cleanup, progress: Progress): Promise<Outcome> {
  const deliveries = new Deliveries(options.seed);
  const server = options.engine === 'sqlserver' ? 'a database on SQL Server' : 'PostgreSQL';
  progress.phase(`starting ${server}, SQS, EventBridge and the functions`);
  const system = await startSystem(cleanup, settings(options, deliveries));
  const database = await openCounting(system.databaseUrl, options.engine);
  cleanup.defer(() => database.end());

  const began = performance.now();
  const placed: Placed = { orders: 0, refused: 0 };
  const stopping = new AbortController();
  cleanup.defer(async () => stopping.abort());
  const watching = watch(database, system, { placed, progress, signal: stopping.signal });
  const producing = placeOrders(
    system.host,
    {
      orders: options.orders,
      seed: options.seed,
      overMs: 5000 + options.outageSeconds * 1000,
      producers: 4,
      signal: stopping.signal,
    },
    placed,
  );
  producing.catch(() => undefined);
  const relayKills = await faults(system, options, progress);
  progress.phase('placing the last orders');
  await producing;
  progress.phase('waiting until everything has settled');
  await settled(database, system);
  stopping.abort();
  await watching;
  progress.phase('counting, from the tables alone');
  const counted = await tally(database, system);
  progress.end();
  return {
    tally: counted,
    placed,
    seed: options.seed,
    relayKills,
    outageSeconds: options.outageSeconds,
    redelivered: deliveries.redelivered,
    duplicatesSuppressed: deliveries.taken - counted.takenIn,
    elapsedMs: performance.now() - began,
  };
}

/** What goes wrong, one thing after the other; answers how many relays were killed. */
async function faults(system: LocalSystem, options: DemoOptions, progress: Progress): Promise<number> {
  let kills = 0;
  const kill = async (when: 'before' | 'after', what: string): Promise<void> => {
    progress.phase(`killing a relay in mid-batch: ${what}`);
    if (await killRelayInMidBatch(system, when, 15_000)) kills += 1;
    else progress.note('no relay published anything within 15 s: nobody was killed');
  };
  progress.phase('placing orders');
  await sleep(1000);
  await kill('before', 'the broker has not seen the batch');
  await sleep(1000);
  await kill('after', 'the broker has the batch, the relay does not know');
  await sleep(1000);
  progress.phase(`the broker is down for ${options.outageSeconds} s`);
  await Promise.all([system.gates.sqs.down(), system.gates.eventBridge.down()]);
  await sleep(options.outageSeconds * 1000);
  await Promise.all([system.gates.sqs.up(), system.gates.eventBridge.up()]);
  await kill('after', 'once more, as the broker comes back');
  return kills;
}

/** Keeps the display alive. */
async function watch(
  database: Counting,
  system: LocalSystem,
  { placed, progress, signal }: { placed: Placed; progress: Progress; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    const left = await unfinished(database, system).catch(() => undefined);
    if (left) {
      progress.update(
        `${placed.orders} orders · to publish ${left.outbox} · on queues ${left.queued} · to handle ${left.inbox}`,
      );
    }
    await sleep(300, undefined, { signal }).catch(() => undefined);
  }
}

/** Waits until nothing is left to do, twice in a row: between two places a message is in neither for a moment. */
async function settled(database: Counting, system: LocalSystem): Promise<void> {
  const end = performance.now() + settleMs;
  let quiet = 0;
  while (quiet < 2 && performance.now() < end) {
    const left = await unfinished(database, system);
    quiet = left.outbox + left.inbox + left.queued === 0 ? quiet + 1 : 0;
    await sleep(250);
  }
}

/** The local run's functions, with leases and waits as short as the day is. */
function settings(options: DemoOptions, deliveries: Deliveries): SystemOptions {
  const folder = options.engine === 'sqlserver' ? 'functions/sqlserver' : 'functions';
  const file = (name: string): string => fileURLToPath(new URL(`./${folder}/${name}.ts`, import.meta.url));
  const sabotaged = (which: Sabotage, name: string) =>
    options.sabotage === which ? { entry: file(name) } : {};
  return {
    engine: options.engine,
    sweepMs: 1000,
    visibilitySeconds: 5,
    deliveries,
    functions: {
      'place-order': { concurrency: 3 },
      'outbox-relay': {
        env: {
          RELAYBOX_LEASE_SECONDS: '3',
          RELAYBOX_BREAKER: JSON.stringify({ firstSeconds: 0.5, factor: 2, maxSeconds: 2 }),
        },
        ...sabotaged('mark-first', 'relay-that-marks-first'),
      },
      'inbox-ingest': sabotaged('dedup', 'ingest-without-dedup'),
      'invoice-on-order-placed': {
        entry: file('invoice'),
        // A server that others share may take seconds over the first statements of a process.
        timeoutMs: options.engine === 'sqlserver' ? 10_000 : 3_000,
        env: { RELAYBOX_MESSAGE_LEASE_SECONDS: '1', RELAYBOX_LEASE_MARGIN_SECONDS: '1' },
      },
    },
  };
}
