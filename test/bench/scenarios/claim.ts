import { defaults } from '../../../shared/delivery/defaults.ts';
import type { OutboxStore } from '../../../shared/store/outbox-store.ts';
import { connect } from '../../../shared/store/postgres/connections.ts';
import { postgresOutboxStore } from '../../../shared/store/postgres/outbox-store.ts';
import { BATCH } from '../contenders/contender.ts';
import { fillOutbox, prepared } from '../contenders/relaybox.ts';
import { type Bench, figure, median, type Scenario } from '../scenario.ts';

const HISTORY = 1_000_000;
const DELAYED = 100_000;
const DUE = 20_000;
const CLAIMS = 300;

/** What a claim (a lease and a read of 100) costs beside rows that are not due. Databases take turns, claim by claim. */
export const claim: Scenario = {
  name: 'claim',
  async run(bench) {
    const sites = {
      alone: await site(bench, {}),
      history: await site(bench, { history: HISTORY }),
      delayed: await site(bench, { delayed: DELAYED }),
    };
    const names = Object.keys(sites) as (keyof typeof sites)[];
    const times = { alone: [] as number[], history: [] as number[], delayed: [] as number[] };
    for (let n = -20; n < CLAIMS; n++) {
      const turn = (n + 20) % names.length;
      for (const name of [...names.slice(turn), ...names.slice(0, turn)]) {
        const ms = await claimOnce(sites[name].store);
        // The first ones fill caches and plan; they don't count.
        if (n >= 0) times[name].push(ms);
      }
    }
    for (const name of names) await sites[name].close();
    const p50 = (name: keyof typeof times): number => median(times[name]);
    return {
      figures: [
        figure('claim, nothing else in the table', 'ms', times.alone),
        figure('claim, beside 1,000,000 messages of history', 'ms', times.history),
        figure('claim, beside 100,000 messages delayed by an hour in the lane', 'ms', times.delayed),
      ],
      goals: [
        {
          name: 'claim p50 with 1,000,000 messages of history, against none',
          value: p50('history') / p50('alone'),
          goal: 1.2,
          is: 'at most',
        },
        {
          name: 'claim p50 with 100,000 messages delayed by an hour in the lane, against none',
          value: p50('delayed') / p50('alone'),
          goal: 1.2,
          is: 'at most',
        },
      ],
    };
  },
};

async function site(
  bench: Bench,
  beside: { readonly history?: number; readonly delayed?: number },
): Promise<{ readonly store: OutboxStore; close(): Promise<void> }> {
  const url = await bench.database();
  const tables = await prepared(url);
  const database = connect({ url }, { max: 2, queryTimeoutMs: 600_000 });
  const { history = 0, delayed = 0 } = beside;
  bench.say(`claim: filling a table with ${DUE} due, ${history} done and ${delayed} delayed messages`);
  for (let left = history; left > 0; left -= 100_000) {
    await fillOutbox(database, tables, { messages: Math.min(left, 100_000), done: true });
  }
  if (delayed > 0) await fillOutbox(database, tables, { messages: delayed, delaySeconds: 3600 });
  await fillOutbox(database, tables, { messages: DUE });
  await database.query(`VACUUM (ANALYZE) ${tables.outbox}`);
  await database.query('CHECKPOINT');
  return { store: postgresOutboxStore(database, tables), close: () => database.end() };
}

async function claimOnce(store: OutboxStore): Promise<number> {
  const began = performance.now();
  const lease = await store.lease({
    destination: 'orders',
    limit: defaults.bucketsPerRelay,
    leaseMs: 30_000,
  });
  if (!lease) throw new Error('no lease was given');
  const { messages } = await store.read(lease, {
    limit: BATCH,
    maxBytes: defaults.claimBytes,
  });
  const ms = performance.now() - began;
  if (messages.length !== BATCH) throw new Error(`a read brought ${messages.length} messages`);
  await store.release(lease);
  return ms;
}
