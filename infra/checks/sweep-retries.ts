import type { DeploymentFacts, FunctionFacts, ScheduleFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { duration } from './words.ts';

const { pass, fail, warning, unknown } = answers('sweep-retries');

/** The least that EventBridge Scheduler accepts. */
const LEAST_AGE = 60;

/** The next sweep makes good a lost one; a retried one only comes late, and after an outage they come all at once. */
export function checkSweepRetries(facts: DeploymentFacts): Finding[] {
  return facts.schedules.map((schedule) =>
    check(
      schedule,
      facts.functions.find(({ id }) => id === schedule.function),
    ),
  );
}

function check(schedule: ScheduleFacts, target: FunctionFacts | undefined): Finding {
  const { id, intervalSeconds: interval, retryAttempts, maxEventAgeSeconds: age } = schedule;
  const again = target?.asyncRetryAttempts;
  const kept = target?.asyncMaxEventAgeSeconds;
  const known = retryAttempts !== undefined && age !== undefined && again !== undefined && kept !== undefined;
  if (interval === undefined || !known) {
    return unknown(
      id,
      `The interval or the retries of the schedule, or of ${schedule.function}, are not known`,
      'a schedule and a function that this app defines',
    );
  }
  const longest = Math.max(interval, LEAST_AGE);
  const wrong: string[] = [];
  const fix: string[] = [];
  if (retryAttempts > 0) {
    wrong.push(`the schedule retries a sweep ${retryAttempts} times`);
    fix.push('retryAttempts: 0 on the schedule');
  }
  if (age > longest) {
    wrong.push(`the schedule keeps a sweep for ${duration(age)}`);
    fix.push(`maxEventAge: Duration.seconds(${longest}) on the schedule`);
  }
  if (again > 0) {
    wrong.push(`${schedule.function} is invoked ${again} times more after an error`);
    fix.push('retryAttempts: 0 on the function');
  }
  // Only throttling makes it matter, so that alone it is no reason to stop a deployment.
  const answer = wrong.length > 0 ? fail : warning;
  // Taking a sweep is all that the schedule does; what Lambda then throttles, it keeps.
  if (kept > longest) {
    wrong.push(`Lambda keeps for ${duration(kept)} what it can't run now of ${schedule.function}`);
    fix.push(`maxEventAge: Duration.seconds(${longest}) on the function`);
  }
  return wrong.length === 0
    ? pass(id, `A lost sweep is made good by the next one, ${duration(interval)} later`)
    : answer(
        id,
        `With one sweep every ${duration(interval)}, ${wrong.join(', and ')}: after an outage stale sweeps pile up`,
        `set ${fix.join(', ')}`,
      );
}
