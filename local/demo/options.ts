import { parseArgs } from 'node:util';
import type { EngineName } from '../database.ts';
import { UsageError } from '../errors.ts';

/** A promise broken on purpose, to show that the demo would tell. */
export type Sabotage = 'dedup' | 'mark-first';

/** What the demo is asked for. */
export interface DemoOptions {
  readonly engine: EngineName;
  readonly orders: number;
  readonly seed: number;
  /** How long the broker is down. */
  readonly outageSeconds: number;
  readonly json: boolean;
  readonly help: boolean;
  readonly sabotage: Sabotage | undefined;
}

export const usage = `npm run demo -- [--orders 200] [--seed 7] [--outage 8] [--engine postgres] [--json]

  --orders <n>   orders to place, 10 to 5000
  --seed <n>     the same seed makes the same orders and the same faults
  --outage <s>   seconds that the broker is down, 1 to 60
  --engine <e>   postgres, or sqlserver on the server that RELAYBOX_SQLSERVER_URL names
  --json         one line of JSON on standard output; progress goes to standard error`;

/**
 * Reads the command line. `--sabotage dedup` and `--sabotage mark-first` break a promise on purpose: the demo must then
 * find doubled or lost effects and fail. They are for its test, and so not in the usage text.
 */
export function readOptions(args: readonly string[]): DemoOptions {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        orders: { type: 'string', default: '200' },
        seed: { type: 'string', default: '7' },
        outage: { type: 'string', default: '8' },
        engine: { type: 'string', default: 'postgres' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
        sabotage: { type: 'string' },
      },
    });
    return {
      engine: readEngine(values.engine),
      orders: wholeNumber('--orders', values.orders, 10, 5000),
      seed: wholeNumber('--seed', values.seed, 0, 2 ** 32 - 1),
      outageSeconds: wholeNumber('--outage', values.outage, 1, 60),
      json: values.json,
      help: values.help,
      sabotage: readSabotage(values.sabotage),
    };
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

function wholeNumber(name: string, text: string, from: number, to: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= from && value <= to) return value;
  throw new Error(`${name} must be a whole number from ${from} to ${to}, but is ${text}`);
}

function readSabotage(text: string | undefined): Sabotage | undefined {
  if (text === undefined || text === 'dedup' || text === 'mark-first') return text;
  throw new Error(`--sabotage must be dedup or mark-first, but is ${text}`);
}

function readEngine(text: string): EngineName {
  if (text === 'postgres' || text === 'sqlserver') return text;
  throw new Error(`--engine must be postgres or sqlserver, but is ${text}`);
}
