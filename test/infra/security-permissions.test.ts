import * as iam from 'aws-cdk-lib/aws-iam';
import { AwsSolutionsChecks } from 'cdk-nag';
import { describe, expect, it, vi } from 'vitest';
import { type Statement, secured, statementsByRole } from './secured-app.ts';

// A synth takes a second, and many where other tests take the processor.
vi.setConfig({ testTimeout: 120_000 });

/** What IAM knows no resource for, or that has none before it is made. Everything else has an ARN. */
const withoutArn = new Set([
  'ec2:DescribeNetworkInterfaces',
  'ec2:DescribeSubnets',
  'xray:PutTraceSegments',
  'xray:PutTelemetryRecords',
]);
const networkInterfaces = [
  'ec2:CreateNetworkInterface',
  'ec2:DeleteNetworkInterface',
  'ec2:AssignPrivateIpAddresses',
  'ec2:UnassignPrivateIpAddresses',
];

const actionsOf = ({ Action }: Statement): string[] => [Action].flat() as string[];
const textOf = (value: unknown): string => JSON.stringify(value);

/** Ids of the stack's resources, without the CDK's hash. */
function resourceOf(value: unknown): string {
  const { Ref, 'Fn::GetAtt': [id] = [] } = value as { Ref?: string; 'Fn::GetAtt'?: string[] };
  return String(Ref ?? id).replace(/[0-9A-F]{8}$/, '');
}

/** What a role may do beside running: action by action, with the resource's id. */
function workOf(statements: readonly Statement[]): Record<string, string[]> {
  const work: Record<string, Set<string>> = {};
  for (const statement of statements) {
    for (const action of actionsOf(statement)) {
      if (withoutArn.has(action) || networkInterfaces.includes(action)) continue;
      work[action] ??= new Set();
      for (const resource of [statement.Resource].flat()) work[action].add(resourceOf(resource));
    }
  }
  return Object.fromEntries(
    Object.entries(work).map(([action, resources]) => [action, [...resources].sort()]),
  );
}

const { template } = secured();
const roles = statementsByRole(template());
const own = [...roles].filter(([id]) => id.startsWith('Relaybox'));
const roleOf = (name: string): Statement[] => {
  const found = own.find(([id]) => id.startsWith(name));
  if (!found) throw new Error(`no role ${name} among ${own.map(([id]) => id).join(', ')}`);
  return found[1];
};

const secret = {
  'secretsmanager:GetSecretValue': ['ClusterSecretAttachment'],
  'secretsmanager:DescribeSecret': ['ClusterSecretAttachment'],
};
const logsOf = (name: string) => ({
  'logs:CreateLogStream': [`${name}Logs`],
  'logs:PutLogEvents': [`${name}Logs`],
});
const receive = ['sqs:ReceiveMessage', 'sqs:ChangeMessageVisibility', 'sqs:DeleteMessage'];
const receiveFrom = (queue: string) => Object.fromEntries(receive.map((action) => [action, [queue]]));
const reach = (...queues: string[]) => ({
  'sqs:GetQueueUrl': [...queues].sort(),
  'sqs:GetQueueAttributes': [...queues].sort(),
});

describe('permissions', () => {
  it.each(own)('of %s are for resources by their ARN, and for actions by their name', (_, statements) => {
    for (const statement of statements) {
      expect(statement.Effect).toBe('Allow');
      for (const action of actionsOf(statement)) expect(action).not.toContain('*');
      if (!textOf(statement.Resource).includes('*')) continue;
      if (statement.Resource === '*') {
        for (const action of actionsOf(statement)) expect(withoutArn).toContain(action);
      } else {
        expect(actionsOf(statement)).toEqual(networkInterfaces);
        expect(textOf(statement.Resource)).toMatch(/:ec2:.*:\*\/\*/);
      }
    }
  });

  it('of the relay: its wakes, its destinations, the login', () => {
    const wake = 'RelayboxRelayWakeQueue';
    expect(workOf(roleOf('RelayboxRelayFunctionRole'))).toEqual({
      ...logsOf('RelayboxRelayFunction'),
      ...secret,
      ...receiveFrom(wake),
      ...reach(wake, 'OrdersQueue'),
      'sqs:SendMessage': ['OrdersQueue', wake],
      'events:PutEvents': ['Bus'],
      'events:DescribeEventBus': ['Bus'],
    });
  });

  it('of an ingest: its queue, the wakes of handlers, the login; no destination', () => {
    const wakes = ['RelayboxOrderPlacedWakeQueue', 'RelayboxRefundedWakeQueue'];
    expect(workOf(roleOf('RelayboxIngestpaymentsserviceFunctionRole'))).toEqual({
      ...logsOf('RelayboxIngestpaymentsserviceFunction'),
      ...secret,
      ...receiveFrom('Incoming'),
      ...reach('Incoming', ...wakes),
      'sqs:SendMessage': wakes,
    });
  });

  it('of a handler: its wakes, those of the relay and of the other handlers, the login; no destination', () => {
    const wakes = ['RelayboxOrderPlacedWakeQueue', 'RelayboxRefundedWakeQueue', 'RelayboxRelayWakeQueue'];
    expect(workOf(roleOf('RelayboxOrderPlacedFunctionRole'))).toEqual({
      ...logsOf('RelayboxOrderPlacedFunction'),
      ...secret,
      ...receiveFrom('RelayboxOrderPlacedWakeQueue'),
      ...reach(...wakes),
      'sqs:SendMessage': wakes,
    });
  });

  it("of a consumer: its queue, the relay's wakes, the login; no destination", () => {
    expect(workOf(roleOf('RelayboxEmailsFunctionRole'))).toEqual({
      ...logsOf('RelayboxEmailsFunction'),
      ...secret,
      ...receiveFrom('RelayboxEmailsQueue'),
      ...reach('RelayboxEmailsQueue', 'RelayboxRelayWakeQueue'),
      'sqs:SendMessage': ['RelayboxRelayWakeQueue'],
    });
  });

  it('let functions run in the shared subnets of another account', () => {
    const statement = roleOf('RelayboxRelayFunctionRole').find((each) =>
      actionsOf(each).includes('ec2:CreateNetworkInterface'),
    );
    expect(textOf(statement?.Resource)).toMatch(/\{"Ref":"AWS::Region"\},":\*:\*\/\*"/);
  });

  it('of maintenance: the wakes of all, for what an operator decides, and the login', () => {
    const wakes = ['RelayboxOrderPlacedWakeQueue', 'RelayboxRefundedWakeQueue', 'RelayboxRelayWakeQueue'];
    expect(workOf(roleOf('RelayboxMaintainFunctionRole'))).toEqual({
      ...logsOf('RelayboxMaintainFunction'),
      ...secret,
      ...reach(...wakes),
      'sqs:SendMessage': wakes,
    });
  });

  it('of the migration: the login, and no queue at all', () => {
    expect(workOf(roleOf('RelayboxMigrationFunctionRole'))).toEqual({
      ...logsOf('RelayboxMigrationFunction'),
      ...secret,
    });
  });

  it('of a schedule: to invoke its one function, and only as this account', () => {
    const found = Object.entries(template().findResources('AWS::IAM::Role')).filter(([id]) =>
      id.includes('SweepScheduleRole'),
    );
    expect(found).toHaveLength(6);
    for (const [id, { Properties }] of found) {
      expect(workOf(roleOf(id))).toEqual({
        'lambda:InvokeFunction': [id.replace(/SweepScheduleRole.*$/, 'Function')],
      });
      expect(Properties.AssumeRolePolicyDocument.Statement).toEqual([
        {
          Action: 'sts:AssumeRole',
          Effect: 'Allow',
          Principal: { Service: 'scheduler.amazonaws.com' },
          Condition: { StringEquals: { 'aws:SourceAccount': { Ref: 'AWS::AccountId' } } },
        },
      ]);
    }
  });

  it("of a producer: the login and the relay's wakes", () => {
    expect(
      workOf(roles.get([...roles.keys()].find((id) => id.startsWith('PlaceOrder')) ?? '') ?? []),
    ).toEqual({
      ...secret,
      ...reach('RelayboxRelayWakeQueue'),
      'sqs:SendMessage': ['RelayboxRelayWakeQueue'],
    });
  });

  it("come from no managed policy of AWS's, which lets a function write to all log groups", () => {
    for (const [id, { Properties }] of Object.entries(template().findResources('AWS::IAM::Role'))) {
      if (id.startsWith('Relaybox')) expect(Properties.ManagedPolicyArns, id).toBeUndefined();
    }
  });

  it('with IAM logins are for one user of one database, and for no secret', () => {
    const found = statementsByRole(secured({}, { iam: true }).template());
    const relay = [...found].find(([id]) => id.startsWith('RelayboxRelayFunctionRole'))?.[1] ?? [];
    const actions = relay.flatMap(actionsOf);
    expect(actions.filter((action) => action.startsWith('secretsmanager:'))).toEqual([]);
    const login = relay.find((statement) => actionsOf(statement).includes('rds-db:connect'));
    expect(textOf(login?.Resource)).toMatch(/:rds-db:.*:dbuser:.*DBClusterResourceId.*\/relaybox/);
  });
});

describe('cdk-nag', () => {
  const findings = (stack: ReturnType<typeof secured>['stack']): string[] =>
    new AwsSolutionsChecks()
      .validateScope(stack.node.root)
      .violations.flatMap(({ ruleName, violatingResources }) =>
        violatingResources.map(
          (resource) => `${(resource as { constructPath?: string }).constructPath}: ${ruleName}`,
        ),
      )
      .filter((finding) => finding.startsWith('Orders/Relaybox/'));

  it("finds nothing in a Relaybox of anybody's stack", () => {
    expect(findings(secured().stack)).toEqual([]);
  });

  it("still finds what is granted to a handler too widely: nothing of that is acknowledged for one's own grants", () => {
    const { stack, relaybox } = secured();
    relaybox.handlers[0]?.function.addToRolePolicy(
      new iam.PolicyStatement({ actions: ['s3:GetObject'], resources: ['*'] }),
    );
    expect(findings(stack)).toEqual([
      'Orders/Relaybox/OrderPlaced/FunctionRole/DefaultPolicy/Resource: AwsSolutions-IAM5[Resource::*]',
    ]);
  });

  it('is told the reason of each exception, and there are no more than these', () => {
    const { relaybox } = secured();
    const acknowledged = relaybox.node
      .findAll()
      .flatMap((construct) =>
        construct.node.metadata
          .filter(({ type }) => type === 'aws:cdk:acknowledged-rules')
          .flatMap(({ data }) => Object.entries(data as Record<string, unknown>)),
      );
    expect([...new Set(acknowledged.map(([id]) => id.replace(/^Annotation::/, '')))].sort()).toEqual([
      'AwsSolutions-IAM5[Resource::*]',
      'AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:ec2:<AWS::Region>:*:*/*]',
      'AwsSolutions-SQS3',
    ]);
    for (const [, reason] of acknowledged) expect(String(reason).length).toBeGreaterThan(30);
  });
});
