import { setTimeout as sleep } from 'node:timers/promises';
import type { Contender } from '../contenders/contender.ts';
import { pgBoss } from '../contenders/pg-boss.ts';
import { relaybox } from '../contenders/relaybox.ts';
import { type Bench, figure, ratio, type Scenario } from '../scenario.ts';

/**
 * A backlog is drained: 400 bytes each, batches of 100, a publisher that takes everything at once. Contenders take
 * turns within each round, in another order each time, so that a slow minute of the machine hits all of them.
 */
export const drain: Scenario = {
  name: 'drain',
  async run(bench) {
    const contenders = {
      kept: await relaybox(await bench.database(), { afterSuccess: 'keep', keys: 0 }),
      deleted: await relaybox(await bench.database(), { afterSuccess: 'delete', keys: 0 }),
      ordered: await relaybox(await bench.database(), { afterSuccess: 'keep', keys: 10 }),
      peer: await pgBoss(await bench.database(), { fetchers: 2, settle: 'complete', fenced: false }),
    };
    const rates = await interleave(bench, contenders);
    return {
      figures: Object.entries(contenders).map(([key, { name }]) =>
        figure(`drain: ${name}`, 'messages/s', rates[key as keyof typeof contenders]),
      ),
      goals: [
        {
          name: 'drain, rows kept, against pg-boss',
          value: ratio(rates.kept, rates.peer),
          goal: 2.5,
          is: 'at least',
        },
        {
          name: 'drain, rows deleted, against pg-boss',
          value: ratio(rates.deleted, rates.peer),
          goal: 3.5,
          is: 'at least',
        },
        {
          name: 'drain of 10 keys in order, against no order',
          value: ratio(rates.ordered, rates.kept),
          goal: 0.9,
          is: 'at least',
        },
      ],
    };
  },
};

/** Runs every contender once per round; answers messages per second, round by round. */
export async function interleave<Name extends string>(
  bench: Bench,
  contenders: Readonly<Record<Name, Contender>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(contenders) as Name[];
  const rates = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, number[]>;
  try {
    for (let round = 0; round < bench.rounds; round++) {
      const turn = round % names.length;
      for (const name of [...names.slice(turn), ...names.slice(0, turn)]) {
        const rate = await once(contenders[name], bench.messages);
        rates[name].push(rate);
        bench.say(`round ${round + 1}: ${contenders[name].name}: ${Math.round(rate)} messages/s`);
      }
    }
  } finally {
    for (const name of names) await contenders[name].close();
  }
  return rates;
}

async function once(contender: Contender, messages: number): Promise<number> {
  await contender.fill(messages);
  await sleep(300);
  const began = performance.now();
  const drained = await contender.drain();
  const seconds = (performance.now() - began) / 1000;
  if (drained !== messages) throw new Error(`${contender.name} drained ${drained} of ${messages} messages`);
  return messages / seconds;
}
