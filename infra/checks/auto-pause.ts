import type { DeploymentFacts, ScheduleFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { count, duration } from './words.ts';

const { pass, warning } = answers('auto-pause');

/** A database that is asked more often than it waits before it pauses never pauses, and is paid for as if it had none. */
export function checkAutoPause({ database, schedules }: DeploymentFacts): Finding[] {
  const { id, pausesAfterSeconds: pause } = database;
  if (pause === undefined) return [pass(id, 'The database does not pause, or nobody here knows')];
  const awake = schedules.filter(({ intervalSeconds }) => (intervalSeconds ?? 0) <= pause);
  if (awake.length === 0) return [pass(id, `Sweeps are sparser than its pause after ${duration(pause)}`)];
  return [
    warning(
      id,
      `It pauses after ${duration(pause)} without a connection, and ${count(awake.length, 'sweep')} run${awake.length === 1 ? 's' : ''} at least as often (${awake.map(intervalOf).join(', ')}), so that it never does`,
      `make them sparse (relay: { sweepInterval }, maintenance: { interval }, and sweepInterval of each handler and inbox), 15 minutes or more, or give the cluster a least capacity above 0`,
    ),
  ];
}

function intervalOf({ function: fn, intervalSeconds }: ScheduleFacts): string {
  return `${fn} each ${duration(intervalSeconds ?? 0)}`;
}
