import { type Duration, Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as scheduler from 'aws-cdk-lib/aws-scheduler';
import type { Construct } from 'constructs';

/** What a schedule does with a function. */
export interface FunctionTargetProps {
  readonly retryAttempts: number;
  readonly maxEventAge: Duration;
  readonly input: scheduler.ScheduleTargetInput;
}

/**
 * A function as a schedule's target, by a role that may invoke this function and nothing else. The CDK's own target lets
 * it invoke every version too, by a wildcard that one would have to answer for.
 */
export class FunctionTarget implements scheduler.IScheduleTarget {
  readonly #function: lambda.IFunction;
  readonly #props: FunctionTargetProps;

  constructor(fn: lambda.IFunction, props: FunctionTargetProps) {
    this.#function = fn;
    this.#props = props;
  }

  bind(schedule: scheduler.ISchedule): scheduler.ScheduleTargetConfig {
    const { retryAttempts, maxEventAge, input } = this.#props;
    return {
      arn: this.#function.functionArn,
      role: this.createRole(schedule),
      input,
      retryPolicy: {
        maximumRetryAttempts: retryAttempts,
        maximumEventAgeInSeconds: maxEventAge.toSeconds(),
      },
    };
  }

  protected createRole(scope: Construct): iam.Role {
    const invoke = new iam.PolicyStatement({
      actions: ['lambda:InvokeFunction'],
      resources: [this.#function.functionArn],
    });
    return new iam.Role(scope, 'Role', {
      // Without the condition, another account's schedule could be given this role.
      assumedBy: new iam.ServicePrincipal('scheduler.amazonaws.com', {
        conditions: { StringEquals: { 'aws:SourceAccount': Stack.of(scope).account } },
      }),
      description: 'Lets a schedule invoke a function of Relaybox',
      inlinePolicies: { Invoke: new iam.PolicyDocument({ statements: [invoke] }) },
    });
  }
}
