import {
  Duration,
  aws_ec2 as ec2,
  aws_events as events,
  aws_kms as kms,
  aws_lambda as lambda,
  aws_secretsmanager as secrets,
  aws_sqs as sqs,
} from 'aws-cdk-lib';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import { describe, expect, test, vi } from 'vitest';
import { Database, Destination } from '../../infra/index.ts';
import { inbox, isolated, part, queue, relayboxIn, saidOf } from './checked-app.ts';
import { inline } from './inline.ts';

// The checks look at what the functions are, not at what is in them.
vi.mock('../../infra/constructs/bundles.ts', async () => {
  const { inline } = await import('./inline.ts');
  return { bundle: () => inline };
});

// A synth is a second of work, and a machine may be busy.
vi.setConfig({ testTimeout: 90_000 });

test('a deployment with everything as we make it is said nothing against', () => {
  const parts = part();
  const relaybox = relayboxIn(parts, {
    destinations: {
      events: Destination.eventBus(new events.EventBus(parts.stack, 'Bus') as events.IEventBus, {
        keyed: false,
      }),
    },
  });
  relaybox.addHandler('OrderPlaced', { messageType: 'order.placed', code: inline });
  expect(saidOf(parts)).toBe('');
});

describe('each check fails the synth through the construct', () => {
  test('lease', () => {
    const parts = part();
    relayboxIn(parts, { relay: { lease: Duration.seconds(10) } });
    expect(saidOf(parts)).toContain('FAIL lease · App/Relaybox/Relay');
  });

  test("a handler's lease, where its environment shortens it", () => {
    const parts = part();
    relayboxIn(parts).addHandler('OrderPlaced', {
      messageType: 'order.placed',
      code: inline,
      timeout: Duration.minutes(5),
      environment: { RELAYBOX_LEASE_MARGIN_SECONDS: '1' },
    });
    expect(saidOf(parts)).toContain('FAIL lease · App/Relaybox/OrderPlaced');
  });

  test('visibility', () => {
    const parts = part();
    relayboxIn(parts, inbox(queue(parts, { visibilityTimeout: Duration.seconds(60) })));
    expect(saidOf(parts)).toContain(
      'The visibility timeout is 60 s, shorter than 6 × the timeout of App/Relaybox/Ingest-payments-service',
    );
  });

  test('inbox-retention', () => {
    const parts = part();
    relayboxIn(parts, { maintenance: { inboxRetention: Duration.days(5) } });
    expect(saidOf(parts)).toContain('FAIL inbox-retention · inbox of payments-service');
  });

  test('connections', () => {
    const parts = part();
    const database = Database.fromSecret(new secrets.Secret(parts.stack, 'S') as secrets.ISecret, {
      databaseName: 'app',
      hostname: 'db.internal',
      maxConnections: 10,
      vpc: parts.vpc,
    });
    relayboxIn(parts, { database });
    expect(saidOf(parts)).toContain('more than 80 % of the 10 that the database allows = 8');
  });

  test('receive-count', () => {
    const parts = part();
    relayboxIn(parts, inbox(queue(parts, {}, 2)));
    expect(saidOf(parts)).toContain('maxReceiveCount is 2, less than 5');
  });

  test('reserved-concurrency', () => {
    const parts = part();
    relayboxIn(parts, { relay: { reservedConcurrentExecutions: 1 } });
    expect(saidOf(parts)).toContain('FAIL reserved-concurrency · App/Relaybox/Relay');
  });

  test('egress', () => {
    const parts = part();
    const vpc = isolated(parts);
    relayboxIn(parts, { vpc: vpc as ec2.IVpc });
    const said = saidOf(parts);
    expect(said).toContain('SQS (to wake functions and to send to queues) cannot be reached');
    expect(said).toContain('Secrets Manager');
    expect(said).not.toContain('EventBridge (');
  });

  test('egress passes with the endpoints in place', () => {
    const parts = part();
    const vpc = isolated(parts);
    vpc.addInterfaceEndpoint('Sqs', { service: ec2.InterfaceVpcEndpointAwsService.SQS });
    vpc.addInterfaceEndpoint('Secrets', { service: ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER });
    relayboxIn(parts, { vpc: vpc as ec2.IVpc });
    expect(saidOf(parts)).toBe('');
  });

  test('egress, of a function that stands in subnets of its own', () => {
    const parts = part();
    const vpc = new ec2.Vpc(parts.stack, 'Mixed', {
      natGateways: 1,
      subnetConfiguration: [
        { name: 'public', subnetType: ec2.SubnetType.PUBLIC },
        { name: 'private', subnetType: ec2.SubnetType.PRIVATE_WITH_EGRESS },
        { name: 'isolated', subnetType: ec2.SubnetType.PRIVATE_ISOLATED },
      ],
    });
    const inSubnets = (id: string, subnetType: ec2.SubnetType) =>
      new lambda.Function(parts.stack, id, {
        code: inline,
        handler: 'index.handler',
        runtime: lambda.Runtime.NODEJS_24_X,
        vpc: vpc as ec2.IVpc,
        vpcSubnets: { subnetType },
      });
    const relaybox = relayboxIn(parts, { vpc: vpc as ec2.IVpc });
    const limits = { maxConcurrency: 1, connections: 1 };
    relaybox.grantProduce(inSubnets('Inside', ec2.SubnetType.PRIVATE_WITH_EGRESS), limits);
    relaybox.grantProduce(inSubnets('Isolated', ec2.SubnetType.PRIVATE_ISOLATED), limits);
    const said = saidOf(parts);
    expect(said).toContain('FAIL egress · App/Isolated');
    expect(said).not.toContain('egress · App/Inside');
    expect(said).not.toContain('egress · App/Mixed');
  });

  test('dead-letter-queue', () => {
    const parts = part();
    const incoming = queue(parts, { fifo: true });
    const standard = new sqs.Queue(parts.stack, 'Standard');
    (incoming.node.defaultChild as sqs.CfnQueue).redrivePolicy = {
      deadLetterTargetArn: standard.queueArn,
      maxReceiveCount: 5,
    };
    const facts = { deadLetterQueue: { fifo: false, maxReceiveCount: 5, retention: Duration.days(4) } };
    relayboxIn(parts, {
      inboxes: [{ source: 'payments-service', queue: incoming, queueFacts: facts }],
    });
    expect(saidOf(parts)).toContain('FAIL dead-letter-queue · App/Incoming');
  });

  test("visibility and receives of a consumer's own queue", () => {
    const parts = part();
    const fn = new lambda.Function(parts.stack, 'Email', {
      code: inline,
      handler: 'index.handler',
      runtime: lambda.Runtime.NODEJS_24_X,
      timeout: Duration.seconds(60),
      vpc: parts.vpc,
    });
    const emails = queue(parts, {}, 2);
    fn.addEventSource(new SqsEventSource(emails, { maxBatchingWindow: Duration.seconds(5) }));
    relayboxIn(parts).grantProduce(fn, { maxConcurrency: 2, connections: 5 });
    const said = saidOf(parts);
    expect(said).toContain('6 × the timeout of App/Email (60 s) + the batching window (5 s) = 365 s');
    expect(said).toContain('FAIL receive-count · App/Incoming');
  });

  test('handlers', () => {
    const parts = part();
    const relaybox = relayboxIn(parts);
    relaybox.addHandler('One', { messageType: 'order.placed', code: inline });
    relaybox.addHandler('Two', { messageType: 'order.placed', code: inline });
    expect(saidOf(parts)).toContain('2 functions handle this type: App/Relaybox/One');
  });

  test('event-bus-key, for the key of a queue behind a bus', () => {
    const parts = part();
    const key = new kms.Key(parts.stack, 'Key');
    const incoming = queue(parts, { encryptionMasterKey: key as kms.IKey });
    relayboxIn(parts, {
      inboxes: [{ source: 'payments-service', queue: incoming, queueFacts: { fedByEventBridge: true } }],
    });
    expect(saidOf(parts)).toContain('FAIL event-bus-key · App/Incoming');
  });

  test("event-bus-key passes where the key's policy has EventBridge in it, as the CDK writes it for a bus", () => {
    const parts = part();
    const key = new kms.Key(parts.stack, 'Key') as kms.IKey;
    const bus = new events.EventBus(parts.stack, 'Bus', { kmsKey: key });
    const incoming = queue(parts, { encryptionMasterKey: key });
    relayboxIn(parts, {
      destinations: { events: Destination.eventBus(bus as events.IEventBus, { keyed: false }) },
      inboxes: [{ source: 'payments-service', queue: incoming, queueFacts: { fedByEventBridge: true } }],
    });
    expect(saidOf(parts)).toBe('');
  });

  test("event-bus-key, where somebody says that the bus's key does not allow it", () => {
    const parts = part();
    const bus = events.EventBus.fromEventBusName(parts.stack, 'Bus', 'central');
    relayboxIn(parts, {
      destinations: { events: Destination.eventBus(bus, { keyed: false, keyAllowsEvents: false }) },
    });
    expect(saidOf(parts)).toContain('FAIL event-bus-key · destination events');
  });

  test('sweep-retries', () => {
    const parts = part();
    const fn = new lambda.Function(parts.stack, 'Own', {
      code: inline,
      handler: 'index.handler',
      runtime: lambda.Runtime.NODEJS_24_X,
      timeout: Duration.seconds(30),
      vpc: parts.vpc,
      retryAttempts: 2,
    });
    relayboxIn(parts).addHandler('OrderPlaced', { messageType: 'order.placed', function: fn });
    expect(saidOf(parts)).toContain('App/Own is invoked 2 times more after an error');
  });
});
