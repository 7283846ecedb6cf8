/** A figure that must be reached. Values are ratios of two figures of the same run, so that the machine's speed cancels out. */
export interface Goal {
  readonly name: string;
  readonly value: number;
  readonly goal: number;
  /** Whether the value has to be at least, or at most, the goal. */
  readonly is: 'at least' | 'at most';
}

/** Median, and how far the samples lie apart. */
export interface Figure {
  readonly name: string;
  readonly unit: 'messages/s' | 'ms';
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
  readonly samples: number;
}

/** What a scenario gets. */
export interface Bench {
  /** Makes an empty database on the run's server, gone at its end, and answers its URL. */
  database(): Promise<string>;
  /** Rounds of a throughput scenario. */
  readonly rounds: number;
  /** Messages of a throughput scenario. */
  readonly messages: number;
  /** Tells whoever waits. */
  say(text: string): void;
}

export interface ScenarioResult {
  readonly figures: readonly Figure[];
  readonly goals: readonly Goal[];
}

/** To add one, export it from a file in `scenarios/` and name it in `main.ts`. */
export interface Scenario {
  readonly name: string;
  run(bench: Bench): Promise<ScenarioResult>;
}

/** Sums up samples. */
export function figure(name: string, unit: Figure['unit'], samples: readonly number[]): Figure {
  const sorted = [...samples].sort((a, b) => a - b);
  return {
    name,
    unit,
    median: median(samples),
    lowest: sorted[0] ?? Number.NaN,
    highest: sorted.at(-1) ?? Number.NaN,
    samples: samples.length,
  };
}

/** The middle value. */
export function median(samples: readonly number[]): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/**
 * The median of round-by-round ratios: what slows the machine down for a while slows both down, and one bad round
 * doesn't decide.
 */
export function ratio(of: readonly number[], to: readonly number[]): number {
  return median(of.map((value, round) => value / (to[round] ?? Number.NaN)));
}

export function met({ value, goal, is }: Goal): boolean {
  return is === 'at least' ? value >= goal : value <= goal;
}
