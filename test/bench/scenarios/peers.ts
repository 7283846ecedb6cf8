import { type PgBossOptions, pgBoss } from '../contenders/pg-boss.ts';
import { relaybox } from '../contenders/relaybox.ts';
import { figure, type Scenario } from '../scenario.ts';
import { interleave } from './drain.ts';

/** Ways to set pg-boss up; the fastest is the one that `drain` uses. */
const variants: Readonly<Record<string, PgBossOptions>> = {
  one: { fetchers: 1, settle: 'complete', fenced: false },
  two: { fetchers: 2, settle: 'complete', fenced: false },
  four: { fetchers: 4, settle: 'complete', fenced: false },
  fenced: { fetchers: 2, settle: 'complete', fenced: true },
  deleted: { fetchers: 2, settle: 'delete', fenced: false },
};

/** Which configuration of pg-boss is its best here. No goals: it backs the choice made in `drain`. */
export const peers: Scenario = {
  name: 'peers',
  async run(bench) {
    const contenders = {
      kept: await relaybox(await bench.database(), { afterSuccess: 'keep', keys: 0 }),
      ...Object.fromEntries(
        await Promise.all(
          Object.entries(variants).map(
            async ([name, options]) => [name, await pgBoss(await bench.database(), options)] as const,
          ),
        ),
      ),
    };
    const rates = await interleave(bench, contenders);
    return {
      figures: Object.entries(contenders).map(([key, { name }]) =>
        figure(`peers: ${name}`, 'messages/s', rates[key as keyof typeof rates]),
      ),
      goals: [],
    };
  },
};
