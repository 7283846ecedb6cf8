import { ArnFormat, Stack, Validations } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as logs from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { flattened } from './finding-id.ts';

/** What a function needs for being a function; what it works with is granted to it. */
export interface ExecutionRoleProps {
  readonly logGroup: logs.ILogGroup;
  readonly inVpc: boolean;
  readonly tracing: boolean;
}

/**
 * A function's role without AWS's managed policies: those let it write to every log group of the account, and create
 * some. The statements stand in the role itself, so that they are there before Lambda creates network interfaces by it,
 * and so that what is acknowledged of them hides nothing of what is granted later.
 */
export class ExecutionRole extends iam.Role {
  constructor(scope: Construct, id: string, props: ExecutionRoleProps) {
    const interfaces = Stack.of(scope).formatArn({
      service: 'ec2',
      // The subnets of a VPC that another account shares are that account's.
      account: '*',
      resource: '*',
      resourceName: '*',
      arnFormat: ArnFormat.SLASH_RESOURCE_NAME,
    });
    super(scope, id, {
      assumedBy: new iam.ServicePrincipal('lambda.amazonaws.com'),
      description: 'Execution role of a function of Relaybox',
      inlinePolicies: {
        Logs: new iam.PolicyDocument({ statements: [writeLogs(props.logGroup)] }),
        ...(props.inVpc && { Network: new iam.PolicyDocument({ statements: useNetwork(interfaces) }) }),
        ...(props.tracing && { Tracing: new iam.PolicyDocument({ statements: [writeTraces()] }) }),
      },
    });
    if (props.inVpc || props.tracing) {
      this.#acknowledge('*', 'ec2:Describe… and xray:Put… know no resources: IAM takes only * for them');
    }
    if (props.inVpc) {
      this.#acknowledge(
        flattened(Stack.of(this).resolve(interfaces)),
        "Lambda makes the function's network interfaces by this role, and their ids are not known before; AWS names this form",
      );
    }
  }

  /** On the role's own statements only, not on policies that others add to it. */
  #acknowledge(resource: string, reason: string): void {
    const role = this.node.defaultChild;
    if (role) Validations.of(role).acknowledge({ id: `AwsSolutions-IAM5[Resource::${resource}]`, reason });
  }
}

/**
 * Turns tracing on for a function with this role. Not by the function's own property: that adds a statement to the policy
 * of what is granted, and what is acknowledged of it would be acknowledged of every grant.
 */
export function trace(fn: lambda.Function, mode: lambda.Tracing): void {
  const resource = fn.node.defaultChild as lambda.CfnFunction;
  resource.tracingConfig = { mode };
}

function writeLogs(logGroup: logs.ILogGroup): iam.PolicyStatement {
  return new iam.PolicyStatement({
    actions: ['logs:CreateLogStream', 'logs:PutLogEvents'],
    resources: [logGroup.logGroupArn],
  });
}

function useNetwork(interfaces: string): iam.PolicyStatement[] {
  return [
    new iam.PolicyStatement({
      actions: [
        'ec2:CreateNetworkInterface',
        'ec2:DeleteNetworkInterface',
        'ec2:AssignPrivateIpAddresses',
        'ec2:UnassignPrivateIpAddresses',
      ],
      resources: [interfaces],
    }),
    new iam.PolicyStatement({
      actions: ['ec2:DescribeNetworkInterfaces', 'ec2:DescribeSubnets'],
      resources: ['*'],
    }),
  ];
}

function writeTraces(): iam.PolicyStatement {
  return new iam.PolicyStatement({
    actions: ['xray:PutTraceSegments', 'xray:PutTelemetryRecords'],
    resources: ['*'],
  });
}
