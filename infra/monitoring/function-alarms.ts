import { Duration } from 'aws-cdk-lib';
import { Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { AlarmSpec, Alarms } from './alarms.ts';
import { recursionDrops, successes, wholeMinutes } from './metrics.ts';
import type { FunctionPart, ScheduledFunctionPart } from './parts.ts';

/** Functions that don't run write nothing, and that is no fault of theirs: not running has alarms of its own. */
const missingData = TreatMissingData.NOT_BREACHING;

/** Functions end their work by themselves before their timeout. So near to it, that did not succeed. */
const NEAR_TIMEOUT_SECONDS = 0.5;

/** Errors, throttles, a duration near the timeout, and drops by recursion detection. */
export function alarmOnFunction(alarms: Alarms, part: FunctionPart): void {
  const { name, function: fn } = part;
  const period = Duration.minutes(5);
  // A failover or a deployment makes a bad moment of everything: two periods of three are more than a moment.
  const lasting = { periods: 3, badPeriods: 2, missingData } as const;
  const sum = { period, statistic: Stats.SUM };
  alarms.add(`${name} errors`, {
    ...lasting,
    metric: fn.metricErrors(sum),
    what: `${name}: invocations end with an error, again and again.`,
    todo: "Read the function's log; the database may be away, or its login refused.",
    runbook: 'a-function-fails',
  });
  alarms.add(`${name} throttles`, {
    ...lasting,
    metric: fn.metricThrottles(sum),
    what: `${name}: Lambda refuses invocations for want of concurrency.`,
    todo: "Raise its reserved concurrency above its triggers' demand, or the account's limit.",
    runbook: 'a-function-is-throttled',
  });
  const timeout = timeoutOf(part);
  if (timeout !== undefined) {
    alarms.add(`${name} duration`, {
      ...lasting,
      metric: fn.metricDuration({ period, statistic: Stats.MAXIMUM }),
      threshold: (timeout.toSeconds() - NEAR_TIMEOUT_SECONDS) * 1000,
      what: `${name}: invocations run into their timeout of ${timeout.toSeconds()} s.`,
      todo: 'Give it more time or memory, or look for what it waits for: a lock, the network, a slow handler.',
      runbook: 'a-function-runs-into-its-timeout',
    });
  }
  alarms.add(`${name} recursion drops`, {
    metric: recursionDrops(fn, period),
    missingData,
    what: `${name}: Lambda took a chain of messages for a loop, and dropped invocations.`,
    todo: 'Set its recursive-loop setting to Allow; Relaybox has hop limits of its own. Sweeps go on meanwhile.',
    runbook: 'invocations-were-dropped-as-recursive',
  });
}

/** Here silence is the fault: a relay that is not invoked writes nothing that could be too high. */
export function alarmOnNotRunning(
  alarms: Alarms,
  part: ScheduledFunctionPart,
  expressions: boolean,
  spec: Pick<AlarmSpec, 'what' | 'todo' | 'runbook'>,
): void {
  const period = wholeMinutes(part.every.toSeconds());
  alarms.add(`${part.name} not running`, {
    ...spec,
    metric: expressions
      ? successes(part.function, period)
      : part.function.metricInvocations({ period, statistic: Stats.SUM }),
    below: true,
    // A schedule is exact to a minute, so where it runs each minute, two of them may fall into one.
    periods: period.toMinutes() === 1 ? 5 : 3,
    missingData: TreatMissingData.BREACHING,
  });
}

function timeoutOf({ function: fn, timeout }: FunctionPart): Duration | undefined {
  return timeout ?? (isOwn(fn) ? fn.timeout : undefined);
}

function isOwn(fn: IFunction): fn is LambdaFunction {
  return fn instanceof LambdaFunction;
}
