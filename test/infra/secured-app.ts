import { App, Duration, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as events from 'aws-cdk-lib/aws-events';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as rds from 'aws-cdk-lib/aws-rds';
import * as sns from 'aws-cdk-lib/aws-sns';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { Database, Destination, Relaybox, type RelayboxProps } from '../../infra/index.ts';

/** A stack with everything that a Relaybox can have, in a VPC of its own. */
export function secured(change: Partial<RelayboxProps> = {}, database: { readonly iam?: boolean } = {}) {
  const stack = new Stack(new App({ context: { 'aws:cdk:bundling-stacks': [] } }), 'Orders');
  // The CDK's classes don't fit its own interfaces where optional properties are exact.
  const vpc = new ec2.Vpc(stack, 'Vpc', { maxAzs: 2, natGateways: 1 }) as ec2.IVpc;
  const bus = new events.EventBus(stack, 'Bus') as events.IEventBus;
  const cluster = new rds.DatabaseCluster(stack, 'Cluster', {
    engine: rds.DatabaseClusterEngine.auroraPostgres({ version: rds.AuroraPostgresEngineVersion.VER_16_6 }),
    vpc,
    writer: rds.ClusterInstance.serverlessV2('Writer'),
    iamAuthentication: true,
  });
  const deadLetterQueue = new sqs.Queue(stack, 'Dead', {
    retentionPeriod: Duration.days(14),
    enforceSSL: true,
  });
  const incoming = new sqs.Queue(stack, 'Incoming', {
    visibilityTimeout: Duration.minutes(3),
    deadLetterQueue: { queue: deadLetterQueue, maxReceiveCount: 5 },
    enforceSSL: true,
  });
  const relaybox = new Relaybox(stack, 'Relaybox', {
    source: 'orders-service',
    database: Database.fromCluster(cluster, {
      databaseName: 'app',
      ...(database.iam && { iamUser: 'relaybox' }),
    }),
    destinations: {
      orders: Destination.queue(new sqs.Queue(stack, 'OrdersQueue', { enforceSSL: true })),
      events: Destination.eventBus(bus),
    },
    inboxes: [{ source: 'payments-service', queue: incoming }, { source: 'stock-service' }],
    alarmTopic: new sns.Topic(stack, 'Alarms', { enforceSSL: true }),
    ...change,
  });
  const code = lambda.Code.fromInline('exports.handler = () => undefined;');
  relaybox.addHandler('OrderPlaced', { messageType: 'order.placed', code });
  relaybox.addHandler('Refunded', { messageType: 'refunded', code });
  relaybox.addConsumer('Emails', { consumer: 'emails', code });
  const producer = new lambda.Function(stack, 'PlaceOrder', {
    runtime: lambda.Runtime.NODEJS_24_X,
    handler: 'index.handler',
    code,
    vpc,
    allowAllOutbound: false,
  });
  relaybox.grantProduce(producer);
  return { stack, relaybox, producer, template: () => Template.fromStack(stack) };
}

/** A statement of a policy, as the template has it. */
export interface Statement {
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
}

/** What each role may do: its own statements, and those of policies attached to it. By the role's id. */
export function statementsByRole(template: Template): Map<string, Statement[]> {
  const found = new Map<string, Statement[]>();
  const add = (role: string, statements: readonly Statement[]): void => {
    found.set(role, [...(found.get(role) ?? []), ...statements]);
  };
  for (const [id, role] of Object.entries(template.findResources('AWS::IAM::Role'))) {
    add(id, []);
    for (const { PolicyDocument } of role['Properties'].Policies ?? []) add(id, PolicyDocument.Statement);
  }
  for (const policy of Object.values(template.findResources('AWS::IAM::Policy'))) {
    const { Roles, PolicyDocument } = policy['Properties'];
    for (const { Ref } of Roles) add(Ref, PolicyDocument.Statement);
  }
  return found;
}
