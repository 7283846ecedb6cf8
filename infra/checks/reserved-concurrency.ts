import { scheduledRuns } from './concurrency.ts';
import type { DeploymentFacts, EventSourceFacts, FunctionFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';

const { pass, fail, warning, unknown } = answers('reserved-concurrency');

/** The least that an SQS event source accepts. */
const LEAST_OF_A_SOURCE = 2;

/** An event source that asks for more than its function may run is throttled, and each throttle counts as a receive. */
export function checkReservedConcurrency(facts: DeploymentFacts): Finding[] {
  return facts.functions.flatMap((each) => {
    const sources = facts.eventSources.filter((source) => source.function === each.id);
    return sources.length === 0 ? [] : [check(each, sources, scheduledRuns(each, facts))];
  });
}

function check(each: FunctionFacts, sources: readonly EventSourceFacts[], sweeps: number): Finding {
  const { id, reservedConcurrency: reserved } = each;
  if (reserved === 'none') return pass(id, "Nothing is reserved: the event sources' own limits hold");
  const limits = sources.map(({ maxConcurrency }) => maxConcurrency);
  if (reserved === undefined || limits.includes(undefined)) {
    return unknown(
      id,
      'The reserved concurrency of the function, or the limit of an event source of it, is not known',
      'a function and an event source that this app defines',
    );
  }
  const least = LEAST_OF_A_SOURCE * sources.length;
  if (limits.includes('none')) {
    return fail(
      id,
      `${reserved} instances are reserved, but an event source of it has no limit and polls with five at first`,
      `set maxConcurrency: ${Math.max(LEAST_OF_A_SOURCE, Math.floor(reserved / sources.length))} on the event source, or reserve nothing`,
    );
  }
  const wanted = limits.reduce<number>((sum, limit) => sum + Number(limit), 0);
  const fix = `reserve ${wanted + sweeps} or more, or set maxConcurrency lower (${LEAST_OF_A_SOURCE} is the least), or reserve nothing`;
  const values = `${reserved} ${reserved === 1 ? 'instance is' : 'instances are'} reserved, and the event sources ask for ${wanted}`;
  if (reserved < wanted) {
    const impossible =
      reserved < least ? ` (an event source can ask for no less than ${LEAST_OF_A_SOURCE})` : '';
    return fail(id, `${values}${impossible}: what is above it is throttled and counts as received`, fix);
  }
  if (reserved < wanted + sweeps) {
    return warning(id, `${values}, which leaves no room for the sweep beside them`, fix);
  }
  return pass(id, `${values}${sweeps > 0 ? ` and the sweep for ${sweeps}` : ''}`);
}
