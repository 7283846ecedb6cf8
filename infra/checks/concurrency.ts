import type { DeploymentFacts, FunctionFacts } from './facts.ts';

/** Lambda's default quota of an account: what a function without any limit can grow to. */
export const ACCOUNT_CONCURRENCY = 1_000;

/** The most instances of a function at once, and where the number comes from. */
export interface Concurrency {
  readonly instances: number;
  readonly limited: boolean;
}

/** Undefined where the facts don't say. */
export function concurrencyOf(each: FunctionFacts, facts: DeploymentFacts): Concurrency | undefined {
  if (typeof each.reservedConcurrency === 'number') return limited(each.reservedConcurrency);
  if (each.maxConcurrency !== undefined) return limited(each.maxConcurrency);
  // Whoever else invokes a producer is not ours to see.
  if (each.role === 'producer') return undefined;
  const sources = facts.eventSources.filter((source) => source.function === each.id);
  if (sources.some(({ maxConcurrency }) => maxConcurrency === undefined)) return undefined;
  if (sources.some(({ maxConcurrency }) => maxConcurrency === 'none')) {
    return { instances: ACCOUNT_CONCURRENCY, limited: false };
  }
  const fromQueues = sources.reduce((sum, source) => sum + Number(source.maxConcurrency), 0);
  return limited(Math.max(1, fromQueues + scheduledRuns(each, facts)));
}

/** Runs of its schedules at once: a function that may run longer than its interval overlaps with itself. */
export function scheduledRuns(each: FunctionFacts, facts: DeploymentFacts): number {
  return facts.schedules
    .filter((schedule) => schedule.function === each.id)
    .reduce((sum, { intervalSeconds }) => {
      if (intervalSeconds === undefined || each.timeoutSeconds === undefined) return sum + 1;
      return sum + Math.max(1, Math.ceil(each.timeoutSeconds / intervalSeconds));
    }, 0);
}

function limited(instances: number): Concurrency {
  return { instances, limited: true };
}
