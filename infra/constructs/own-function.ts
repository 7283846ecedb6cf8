import type { Duration } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { ExecutionRole, trace } from './execution-role.ts';
import type { Network } from './network.ts';
import { MAX_EVENT_AGE } from './user-function.ts';

/** What all functions of a Relaybox have in common. */
export interface Common {
  readonly network: Network;
  /** Every function's: database, tables, service name. */
  readonly environment: Readonly<Record<string, string>>;
  readonly logRetention: logs.RetentionDays;
  readonly tracing: lambda.Tracing;
}

/** One function. */
export interface OwnFunctionProps {
  readonly common: Common;
  readonly code: lambda.Code;
  readonly description: string;
  readonly memorySize: number;
  readonly timeout: Duration;
  readonly environment?: Readonly<Record<string, string>>;
  readonly reservedConcurrentExecutions?: number;
}

/**
 * A function of Relaybox's: its log group with a retention, its place in the network, its settings. Failed invocations
 * are not repeated by Lambda: the next wake or sweep does their work, and a repetition would run beside it.
 */
export class OwnFunction extends lambda.Function {
  constructor(scope: Construct, id: string, props: OwnFunctionProps) {
    const { common } = props;
    const logGroup = new logs.LogGroup(scope, `${id}Logs`, {
      retention: common.logRetention,
    });
    const tracing = common.tracing !== lambda.Tracing.DISABLED;
    const role = new ExecutionRole(scope, `${id}Role`, {
      logGroup,
      inVpc: common.network.vpc !== undefined,
      tracing,
    });
    super(scope, id, {
      code: props.code,
      role,
      handler: 'index.handler',
      runtime: lambda.Runtime.NODEJS_24_X,
      architecture: lambda.Architecture.ARM_64,
      description: props.description,
      memorySize: props.memorySize,
      timeout: props.timeout,
      environment: { ...common.environment, ...props.environment },
      ...(props.reservedConcurrentExecutions !== undefined && {
        reservedConcurrentExecutions: props.reservedConcurrentExecutions,
      }),
      ...common.network.placement,
      logGroup,
      retryAttempts: 0,
      // Lambda keeps what it throttles, and by itself for six hours: a pile of stale sweeps.
      maxEventAge: MAX_EVENT_AGE,
      // Wakes that a function sends itself are a chain by design, with a limit of its own (`maxWakeHops`). Lambda would
      // cut it after sixteen, and drop the wake.
      recursiveLoop: lambda.RecursiveLoop.ALLOW,
    });
    if (tracing) trace(this, common.tracing);
  }
}
