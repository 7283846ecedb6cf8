import type { DeploymentFacts, EventSourceFacts, FunctionFacts } from './facts.ts';

/** A queue that messages arrive on, and what the function is that takes them. */
export interface Arrival {
  readonly source: EventSourceFacts;
  readonly role: FunctionFacts['role'] | undefined;
}

/** The event sources that bring messages, not wakes. */
export function arrivals(facts: DeploymentFacts): Arrival[] {
  return facts.eventSources.flatMap((source) =>
    source.wake ? [] : [{ source, role: facts.functions.find(({ id }) => id === source.function)?.role }],
  );
}
