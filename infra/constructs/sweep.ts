import { Duration } from 'aws-cdk-lib';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import * as scheduler from 'aws-cdk-lib/aws-scheduler';
import { Construct } from 'constructs';
import { FunctionTarget } from './function-target.ts';

/** How a function is swept. */
export interface SweepProps {
  readonly function: lambda.IFunction;
  /** At least a minute. */
  readonly interval: Duration;
  readonly description: string;
}

/**
 * A schedule that invokes a function. Late sweeps are dropped: after an outage the next one does the work of all of
 * them, and a pile of stale ones would only run side by side.
 */
export class Sweep extends Construct {
  /** How often. */
  readonly interval: Duration;
  readonly retryAttempts = 0;
  /** EventBridge Scheduler's least. */
  readonly maxEventAge: Duration = Duration.seconds(60);
  readonly schedule: scheduler.Schedule;

  constructor(scope: Construct, id: string, props: SweepProps) {
    super(scope, id);
    this.interval = props.interval;
    this.schedule = this.createSchedule(props);
  }

  protected createSchedule(props: SweepProps): scheduler.Schedule {
    return new scheduler.Schedule(this, 'Schedule', {
      description: props.description,
      schedule: scheduler.ScheduleExpression.rate(props.interval),
      target: new FunctionTarget(props.function, {
        retryAttempts: this.retryAttempts,
        maxEventAge: this.maxEventAge,
        input: scheduler.ScheduleTargetInput.fromObject({ sweep: true }),
      }),
    });
  }
}
