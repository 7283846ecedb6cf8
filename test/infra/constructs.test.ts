import { App, Duration, Stack } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as events from 'aws-cdk-lib/aws-events';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as rds from 'aws-cdk-lib/aws-rds';
import * as secretsmanager from 'aws-cdk-lib/aws-secretsmanager';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { describe, expect, it, vi } from 'vitest';
import { Database, Destination, Relaybox, type RelayboxProps } from '../../infra/index.ts';
import { inline } from './inline.ts';

// The CDK's classes don't fit its own interfaces under `exactOptionalPropertyTypes`: hence the `as`.

// A synth is a second of work, and a machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

const recommended = await import('aws-cdk-lib/recommended-feature-flags.json', { with: { type: 'json' } });

interface World {
  readonly stack: Stack;
  readonly vpc: ec2.IVpc;
  readonly database: Database;
}

function world(context: Record<string, unknown> = {}): World {
  const app = new App({ context: { 'aws:cdk:bundling-stacks': [], ...context } });
  const stack = new Stack(app, 'Orders');
  const vpc = new ec2.Vpc(stack, 'Vpc', { maxAzs: 2, natGateways: 1 }) as ec2.IVpc;
  const cluster = new rds.DatabaseCluster(stack, 'Cluster', {
    engine: rds.DatabaseClusterEngine.auroraPostgres({ version: rds.AuroraPostgresEngineVersion.VER_16_6 }),
    writer: rds.ClusterInstance.serverlessV2('Writer'),
    iamAuthentication: true,
    vpc,
  });
  return { stack, vpc, database: Database.fromCluster(cluster, { databaseName: 'app' }) };
}

function relayboxIn({ stack, database }: World, props: Partial<RelayboxProps> = {}): Relaybox {
  return new Relaybox(stack, 'Relaybox', { source: 'orders-service', database, ...props });
}

/** The logical id of a construct's own resource. */
function idOf(stack: Stack, construct: { readonly node: { readonly defaultChild?: unknown } }): string {
  return stack.getLogicalId(construct.node.defaultChild as Parameters<Stack['getLogicalId']>[0]);
}

/** A function's variables, resolved as far as the template goes. */
function environmentOf(template: Template, stack: Stack, fn: lambda.IFunction): Record<string, unknown> {
  const resource = template.findResources('AWS::Lambda::Function')[idOf(stack, fn)];
  return resource?.['Properties'].Environment.Variables;
}

/** JSON of a variable, whose references are put in as `<LogicalId>` or `<LogicalId.Attribute>`. */
function parsed(value: unknown): unknown {
  const parts: unknown[] =
    typeof value === 'string' ? [value] : (value as { 'Fn::Join': [string, unknown[]] })['Fn::Join'][1];
  const text = parts.map((part) => (typeof part === 'string' ? part : referenceOf(part)));
  return JSON.parse(text.join(''));
}

function referenceOf(part: unknown): string {
  const { Ref, 'Fn::GetAtt': attribute } = part as { Ref?: string; 'Fn::GetAtt'?: [string, string] };
  if (attribute?.[1] === 'Endpoint.Port') return '5432';
  return `<${Ref ?? attribute?.join('.')}>`;
}

describe('the relay', () => {
  it('is ARM64 on Node 24, traced, and not repeated by Lambda, which may not cut its chain of wakes', () => {
    const { stack, ...rest } = world();
    const { relay } = relayboxIn({ stack, ...rest });
    const template = Template.fromStack(stack);
    template.hasResourceProperties('AWS::Lambda::Function', {
      Description: 'Relaybox: carries outbox messages to their destinations',
      Architectures: ['arm64'],
      Runtime: 'nodejs24.x',
      Handler: 'index.handler',
      MemorySize: 512,
      Timeout: 60,
      RecursiveLoop: 'Allow',
      TracingConfig: { Mode: 'Active' },
    });
    template.hasResourceProperties('AWS::Lambda::EventInvokeConfig', {
      FunctionName: { Ref: idOf(stack, relay.function) },
      MaximumRetryAttempts: 0,
      // Not Lambda's six hours: what it throttles would be a pile of stale sweeps.
      MaximumEventAgeInSeconds: 60,
    });
  });

  it('is woken by a queue that keeps a wake beyond its longest delay, and has no dead-letter queue', () => {
    const { stack, ...rest } = world();
    const { relay } = relayboxIn({ stack, ...rest });
    const template = Template.fromStack(stack);
    const queue = template.findResources('AWS::SQS::Queue')[idOf(stack, relay.wakeQueue.queue)];
    expect(queue?.['Properties']).toEqual({
      MessageRetentionPeriod: 1200,
      VisibilityTimeout: 360,
      SqsManagedSseEnabled: true,
    });
    template.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      FunctionName: { Ref: idOf(stack, relay.function) },
      BatchSize: 10,
      MaximumBatchingWindowInSeconds: Match.absent(),
      ScalingConfig: { MaximumConcurrency: 2 },
    });
  });

  it('refuses a FIFO queue for its wakes, which come delayed, and one by one', () => {
    const { stack, ...rest } = world();
    const wakeQueue = new sqs.Queue(stack, 'Wakes', { fifo: true });
    expect(() => relayboxIn({ stack, ...rest }, { relay: { wakeQueue } })).toThrow(
      'Orders/Wakes is a FIFO queue: a wake queue must be standard',
    );
  });

  it('is swept each minute, and a sweep that comes late is dropped', () => {
    const { stack, ...rest } = world();
    const { relay } = relayboxIn({ stack, ...rest });
    Template.fromStack(stack).hasResourceProperties('AWS::Scheduler::Schedule', {
      ScheduleExpression: 'rate(1 minute)',
      FlexibleTimeWindow: { Mode: 'OFF' },
      Target: {
        Arn: { 'Fn::GetAtt': [idOf(stack, relay.function), 'Arn'] },
        RetryPolicy: { MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: 60 },
      },
    });
  });

  it('knows its destinations by URL and ARN, and its database by a secret that it reads itself', () => {
    const { stack, ...rest } = world();
    const orders = new sqs.Queue(stack, 'OrdersQueue', { fifo: true });
    const bus = new events.EventBus(stack, 'Bus') as events.IEventBus;
    const { relay } = relayboxIn(
      { stack, ...rest },
      {
        destinations: {
          orders: Destination.queue(orders, { keyed: true, onFailedKey: 'skip' }),
          events: Destination.eventBus(bus, { keyed: false }),
        },
      },
    );
    const template = Template.fromStack(stack);
    const environment = environmentOf(template, stack, relay.function);
    expect(parsed(environment['RELAYBOX_DESTINATIONS'])).toEqual({
      orders: { type: 'sqs', url: `<${idOf(stack, orders)}>`, fifo: true, onFailedKey: 'skip' },
      events: { type: 'eventbridge', bus: expect.stringMatching(/^<Bus\w+\.Arn>$/) },
    });
    expect(parsed(environment['RELAYBOX_DATABASE'])).toEqual({
      engine: 'postgres',
      host: expect.stringMatching(/^<Cluster\w+\.Endpoint\.Address>$/),
      port: 5432,
      database: 'app',
      secretArn: expect.stringMatching(/^<ClusterSecret/),
    });
  });

  it('takes its settings', () => {
    const { stack, ...rest } = world();
    const wakeQueue = new sqs.Queue(stack, 'Wakes', { visibilityTimeout: Duration.minutes(12) });
    const { relay } = relayboxIn(
      { stack, ...rest },
      {
        relay: {
          mode: 'continuous',
          sweepInterval: Duration.minutes(2),
          batchSize: 100,
          parallelism: 8,
          lease: Duration.seconds(60),
          afterSuccess: 'archive',
          onFailedKey: 'skip',
          memorySize: 1024,
          maxConcurrency: 4,
          wakeQueue,
        },
      },
    );
    const template = Template.fromStack(stack);
    expect(environmentOf(template, stack, relay.function)).toMatchObject({
      RELAYBOX_MODE: 'continuous',
      RELAYBOX_BATCH_SIZE: '100',
      RELAYBOX_PARALLELISM: '8',
      RELAYBOX_LEASE_SECONDS: '60',
      RELAYBOX_AFTER_SUCCESS: 'archive',
      RELAYBOX_ON_FAILED_KEY: 'skip',
      RELAYBOX_WAKE_QUEUE_URL: { Ref: idOf(stack, wakeQueue) },
    });
    template.hasResourceProperties('AWS::Lambda::Function', { MemorySize: 1024, Timeout: 120 });
    template.resourceCountIs('AWS::SQS::Queue', 1);
  });
});

describe('an inbox', () => {
  it('stores what its queue brings, reporting failures record by record', () => {
    const { stack, ...rest } = world();
    const dead = new sqs.Queue(stack, 'Dead', { retentionPeriod: Duration.days(14) });
    const incoming = new sqs.Queue(stack, 'Incoming', {
      visibilityTimeout: Duration.minutes(3),
      deadLetterQueue: { queue: dead, maxReceiveCount: 5 },
    });
    const inboxes = [{ source: 'payments-service', consumer: 'billing', queue: incoming }];
    const [ingest] = relayboxIn({ stack, ...rest }, { inboxes }).ingests;
    const template = Template.fromStack(stack);
    expect(environmentOf(template, stack, ingest?.function as lambda.IFunction)).toMatchObject({
      RELAYBOX_INBOX_SOURCE: 'payments-service',
      RELAYBOX_CONSUMER: 'billing',
    });
    template.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      EventSourceArn: { 'Fn::GetAtt': [idOf(stack, incoming), 'Arn'] },
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      ScalingConfig: { MaximumConcurrency: 2 },
    });
  });

  it('gets a queue and a dead-letter queue where it is given none', () => {
    const { stack, ...rest } = world();
    const [ingest] = relayboxIn({ stack, ...rest }, { inboxes: [{ source: 'payments-service' }] }).ingests;
    const template = Template.fromStack(stack);
    const queues = template.findResources('AWS::SQS::Queue');
    const dead = ingest?.deadLetterQueue as sqs.Queue;
    expect(queues[idOf(stack, ingest?.queue as sqs.Queue)]?.['Properties']).toMatchObject({
      VisibilityTimeout: 180,
      RedrivePolicy: {
        deadLetterTargetArn: { 'Fn::GetAtt': [idOf(stack, dead), 'Arn'] },
        maxReceiveCount: 5,
      },
    });
    expect(queues[idOf(stack, dead)]?.['Properties']).toMatchObject({ MessageRetentionPeriod: 14 * 86_400 });
  });
});

describe('the migration', () => {
  it('runs at the deployment, after the database and its rules are there, and before the functions change', () => {
    const { stack, vpc, ...rest } = world();
    const relaybox = relayboxIn({ stack, vpc, ...rest }, { inboxes: [{ source: 'payments-service' }] });
    const handler = relaybox.addHandler('OrderPlaced', { messageType: 'order.placed', code: inline });
    const producer = functionIn({ stack, vpc, ...rest });
    relaybox.grantProduce(producer);
    const template = Template.fromStack(stack);
    const triggers = template.findResources('Custom::Trigger');
    const [triggerId = '', trigger] = Object.entries(triggers)[0] ?? [];
    expect(trigger?.['Properties']).toMatchObject({ InvocationType: 'RequestResponse', Timeout: '300000' });
    const needed: string[] = trigger?.['DependsOn'];
    expect(needed.some((id) => id.startsWith('ClusterWriter'))).toBe(true);
    expect(needed.some((id) => /^ClusterSecurityGroupfromOrdersRelayboxNetwork/.test(id))).toBe(true);
    const functions = template.findResources('AWS::Lambda::Function');
    const after = [relaybox.relay, relaybox.maintain, ...relaybox.ingests, handler].map(
      (worker) => worker.function,
    );
    for (const fn of [...after, producer]) {
      expect(functions[idOf(stack, fn)]?.['DependsOn'], fn.node.path).toContain(triggerId);
    }
  });

  it('can have a login of its own', () => {
    const { stack, vpc } = world();
    const secret = new secretsmanager.Secret(stack, 'Worker') as secretsmanager.ISecret;
    const owner = new secretsmanager.Secret(stack, 'Owner') as secretsmanager.ISecret;
    const database = Database.fromSecret(secret, {
      hostname: 'db.internal',
      databaseName: 'app',
      migrationSecret: owner,
      vpc,
    });
    const { migration, relay } = relayboxIn({ stack, vpc, database });
    const template = Template.fromStack(stack);
    const arnOf = (fn: lambda.IFunction) => parsed(environmentOf(template, stack, fn)['RELAYBOX_DATABASE']);
    expect(arnOf(migration.function)).toMatchObject({ secretArn: expect.stringMatching(/^<Owner/) });
    expect(arnOf(relay.function)).toMatchObject({ secretArn: expect.stringMatching(/^<Worker/) });
  });

  it('is left to a person where the props say so', () => {
    const parts = world();
    relayboxIn(parts, { migration: { atDeploy: false } });
    Template.fromStack(parts.stack).resourceCountIs('Custom::Trigger', 0);
  });
});

describe('a handler', () => {
  it('is woken by its own queue and swept each minute', () => {
    const { stack, ...rest } = world();
    const relaybox = relayboxIn({ stack, ...rest });
    const handler = relaybox.addHandler('OrderPlaced', {
      messageType: 'order.placed',
      entry: 'examples/orders/invoice-on-order-placed.ts',
      timeout: Duration.seconds(20),
    });
    const template = Template.fromStack(stack);
    template.hasResourceProperties('AWS::SQS::Queue', {
      VisibilityTimeout: 120,
      MessageRetentionPeriod: 1200,
    });
    template.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      FunctionName: { Ref: idOf(stack, handler.function) },
      EventSourceArn: { 'Fn::GetAtt': [idOf(stack, handler.wakeQueue.queue), 'Arn'] },
    });
    template.hasResourceProperties('AWS::Scheduler::Schedule', {
      Target: { Arn: { 'Fn::GetAtt': [idOf(stack, handler.function), 'Arn'] } },
    });
  });

  it('is woken by the ingests and handlers of its consumer, and by no other', () => {
    const { stack, ...rest } = world();
    const relaybox = relayboxIn(
      { stack, ...rest },
      { inboxes: [{ source: 'payments-service' }, { source: 'payments-service', consumer: 'audit' }] },
    );
    const [placed, cancelled] = ['order.placed', 'order.cancelled'].map((messageType) =>
      relaybox.addHandler(messageType, { messageType, code: inline }),
    );
    const audit = relaybox.addHandler('Audit', {
      messageType: 'order.placed',
      consumer: 'audit',
      code: inline,
    });
    const template = Template.fromStack(stack);
    const urlsOf = (fn: lambda.IFunction | undefined) =>
      parsed(environmentOf(template, stack, fn as lambda.IFunction)['RELAYBOX_INBOX_WAKE_QUEUE_URLS']);
    const urlOf = (handler: typeof audit | undefined) =>
      `<${idOf(stack, handler?.wakeQueue.queue as sqs.Queue)}>`;
    const ours = { 'order.placed': urlOf(placed), 'order.cancelled': urlOf(cancelled) };
    expect(urlsOf(relaybox.ingests[0]?.function)).toEqual(ours);
    expect(urlsOf(placed?.function)).toEqual(ours);
    expect(urlsOf(cancelled?.function)).toEqual(ours);
    expect(urlsOf(relaybox.ingests[1]?.function)).toEqual({ 'order.placed': urlOf(audit) });
  });

  it('may be a function made elsewhere, which is wired like ours', () => {
    const { stack, vpc, ...rest } = world();
    const relaybox = relayboxIn({ stack, vpc, ...rest });
    const fn = functionIn({ stack, vpc, ...rest });
    relaybox.addHandler('OrderPlaced', { messageType: 'order.placed', function: fn });
    const template = Template.fromStack(stack);
    expect(Object.keys(environmentOf(template, stack, fn))).toEqual(
      expect.arrayContaining(['RELAYBOX_DATABASE', 'RELAYBOX_SOURCE', 'RELAYBOX_WAKE_QUEUE_URL']),
    );
    template.hasResourceProperties('AWS::Lambda::EventInvokeConfig', {
      FunctionName: { Ref: idOf(stack, fn) },
      MaximumRetryAttempts: 0,
    });
    const resource = template.findResources('AWS::Lambda::Function')[idOf(stack, fn)];
    expect(resource?.['Properties'].RecursiveLoop).toBe('Allow');
  });

  it('without entry, code or function says what is missing', () => {
    const relaybox = relayboxIn(world());
    expect(() => relaybox.addHandler('X', { messageType: 'x' })).toThrow(
      /needs an entry, a code or a function/,
    );
    expect(() => relaybox.addHandler('Y', { messageType: 'y', entry: 'nowhere.ts' })).toThrow(
      /There is no handler at .*nowhere\.ts \(entry is nowhere\.ts\)/,
    );
  });
});

function functionIn({ stack, vpc }: World): lambda.Function {
  return new lambda.Function(stack, 'PlaceOrder', {
    runtime: lambda.Runtime.NODEJS_24_X,
    handler: 'index.handler',
    code: inline,
    vpc,
  });
}

describe('grantProduce', () => {
  it('gives a function the database, the wake queue and the limits of the destinations', () => {
    const { stack, vpc, ...rest } = world();
    const bus = new events.EventBus(stack, 'Bus') as events.IEventBus;
    const relaybox = relayboxIn(
      { stack, vpc, ...rest },
      { destinations: { events: Destination.eventBus(bus) } },
    );
    const fn = functionIn({ stack, vpc, ...rest });
    relaybox.grantProduce(fn, { maxConcurrency: 5, connections: 1 });
    const template = Template.fromStack(stack);
    const environment = environmentOf(template, stack, fn);
    expect(parsed(environment['RELAYBOX_DESTINATION_LIMITS'])).toEqual({ events: { type: 'eventbridge' } });
    expect(environment['RELAYBOX_WAKE_QUEUE_URL']).toEqual({
      Ref: idOf(stack, relaybox.relay.wakeQueue.queue),
    });
    template.hasResourceProperties('AWS::EC2::SecurityGroupIngress', {
      GroupId: { 'Fn::GetAtt': [Match.stringLikeRegexp('^ClusterSecurityGroup'), 'GroupId'] },
      SourceSecurityGroupId: {
        'Fn::GetAtt': [Match.stringLikeRegexp('^PlaceOrderSecurityGroup'), 'GroupId'],
      },
      FromPort: { 'Fn::GetAtt': [Match.stringLikeRegexp('^Cluster'), 'Endpoint.Port'] },
    });
    const actions = JSON.stringify(
      template.findResources('AWS::IAM::Policy', {
        Properties: { Roles: [{ Ref: Match.stringLikeRegexp('^PlaceOrder') }] },
      }),
    );
    for (const action of ['sqs:SendMessage', 'secretsmanager:GetSecretValue'])
      expect(actions).toContain(action);
  });

  it("hands over each queue's own maximum message size, read from the queue or said of an imported one", () => {
    const { stack, vpc, ...rest } = world();
    const small = new sqs.Queue(stack, 'Small', { maxMessageSizeBytes: 262_144 });
    const late = new sqs.Queue(stack, 'Late');
    const arn = 'arn:aws:sqs:eu-central-1:111122223333:theirs';
    const theirs = (id: string) => sqs.Queue.fromQueueArn(stack, id, arn);
    const relaybox = relayboxIn(
      { stack, vpc, ...rest },
      {
        destinations: {
          small: Destination.queue(small),
          late: Destination.queue(late),
          plain: Destination.queue(new sqs.Queue(stack, 'Plain')),
          theirs: Destination.queue(theirs('Theirs'), { queueFacts: { maxMessageSizeBytes: 1_024 } }),
          unknown: Destination.queue(theirs('Unknown')),
        },
      },
    );
    (late.node.defaultChild as sqs.CfnQueue).maximumMessageSize = 2_048;
    const fn = functionIn({ stack, vpc, ...rest });
    relaybox.grantProduce(fn, { maxConcurrency: 5, connections: 1 });
    const environment = environmentOf(Template.fromStack(stack), stack, fn);
    expect(parsed(environment['RELAYBOX_DESTINATION_LIMITS'])).toEqual({
      small: { type: 'sqs', maxBytes: 262_144 },
      late: { type: 'sqs', maxBytes: 2_048 },
      plain: { type: 'sqs' },
      theirs: { type: 'sqs', maxBytes: 1_024 },
      unknown: { type: 'sqs' },
    });
  });

  it('opens the database to a function that may go anywhere, in the stack of the function, and the CDK warns of nothing', () => {
    const app = new App({ context: { 'aws:cdk:bundling-stacks': [] } });
    const base = new Stack(app, 'Base');
    const vpc = new ec2.Vpc(base, 'Vpc', { maxAzs: 2, natGateways: 1 }) as ec2.IVpc;
    const instance = new rds.DatabaseInstance(base, 'Instance', {
      engine: rds.DatabaseInstanceEngine.postgres({ version: rds.PostgresEngineVersion.VER_17 }),
      vpc,
    });
    const stack = new Stack(app, 'Orders');
    const database = Database.fromInstance(instance, { databaseName: 'app' });
    const fn = functionIn({ stack, vpc, database });
    relayboxIn({ stack, vpc, database }).grantProduce(fn);
    expect(() => app.synth()).not.toThrow();
    Template.fromStack(stack).hasResourceProperties('AWS::EC2::SecurityGroupIngress', {
      SourceSecurityGroupId: {
        'Fn::GetAtt': [Match.stringLikeRegexp('^PlaceOrderSecurityGroup'), 'GroupId'],
      },
    });
    const warnings = Annotations.fromStack(stack).findWarning('*', Match.stringLikeRegexp('Egress'));
    expect(warnings).toEqual([]);
  });

  it('says of an imported function what it can not set, and how to set it', () => {
    const { stack, ...rest } = world();
    const relaybox = relayboxIn({ stack, ...rest });
    const imported = lambda.Function.fromFunctionArn(
      stack,
      'Imported',
      'arn:aws:lambda:eu-central-1:111122223333:function:place-order',
    );
    relaybox.grantProduce(imported);
    const annotations = Annotations.fromStack(stack);
    const said = annotations
      .findWarning('/Orders/Imported', Match.anyValue())
      .map(({ entry }) => String(entry.data));
    const environment = said.find((text) => text.includes('environment'));
    expect(environment).toContain("its environment can't be set from here");
    for (const name of ['RELAYBOX_DATABASE=', 'RELAYBOX_WAKE_QUEUE_URL=', 'RELAYBOX_DESTINATION_LIMITS={}']) {
      expect(environment).toContain(name);
    }
    expect(environment).toContain('addEnvironment');
    expect(environment).toContain('"host":"<Cluster');
    const role = said.find((text) => text.includes('role'));
    for (const permission of ['sqs:SendMessage on <', 'secretsmanager:GetSecretValue on <']) {
      expect(role).toContain(permission);
    }
    expect(said.find((text) => text.includes('security group'))).toContain(
      "the database's can't be opened to it",
    );
  });

  it('says of a function outside of the VPC that it has no way to the database', () => {
    const { stack, ...rest } = world();
    const relaybox = relayboxIn({ stack, ...rest });
    const outside = new lambda.Function(stack, 'Outside', {
      runtime: lambda.Runtime.NODEJS_24_X,
      handler: 'index.handler',
      code: inline,
    });
    relaybox.grantProduce(outside);
    Annotations.fromStack(stack).hasWarning(
      '/Orders/Outside',
      Match.stringLikeRegexp('runs outside of a VPC, and the database is in Orders/Vpc'),
    );
  });
});

describe('a database', () => {
  it('is logged in to with IAM, without a secret', () => {
    const { stack, vpc } = world();
    const instance = new rds.DatabaseInstance(stack, 'Instance', {
      engine: rds.DatabaseInstanceEngine.postgres({ version: rds.PostgresEngineVersion.VER_17 }),
      iamAuthentication: true,
      vpc,
    });
    const database = Database.fromInstance(instance, { databaseName: 'app', iamUser: 'relaybox' });
    const { relay } = relayboxIn({ stack, vpc, database });
    const template = Template.fromStack(stack);
    const settings = parsed(environmentOf(template, stack, relay.function)['RELAYBOX_DATABASE']);
    expect(settings).toMatchObject({ user: 'relaybox', iam: true });
    expect(settings).not.toHaveProperty('secretArn');
    const policies = JSON.stringify(template.findResources('AWS::IAM::Policy'));
    expect(policies).toContain('rds-db:connect');
    expect(policies).not.toContain('secretsmanager:GetSecretValue');
  });

  it('behind a proxy is told so, and has to be told the secret and the VPC', () => {
    const { stack, vpc } = world();
    const proxy = rds.DatabaseProxy.fromDatabaseProxyAttributes(stack, 'Proxy', {
      dbProxyArn: 'arn:aws:rds:eu-central-1:111122223333:db-proxy:prx-1',
      dbProxyName: 'proxy',
      endpoint: 'proxy.example.internal',
      securityGroups: [],
    });
    expect(() => Database.fromProxy(proxy, { databaseName: 'app', vpc })).toThrow(
      /Orders\/Proxy doesn't tell its secret.*say `secret`, or `iamUser`/,
    );
    const secret = new secretsmanager.Secret(stack, 'Secret') as secretsmanager.ISecret;
    const database = Database.fromProxy(proxy, { databaseName: 'app', vpc, secret });
    expect(database.settings()).toMatchObject({ host: 'proxy.example.internal', port: 5432, proxy: true });
  });

  it('of Aurora Serverless tells the connections that it allows, by its largest capacity', () => {
    const { stack, vpc, database } = world();
    // 2 units are 4 GiB: 0.75 × 4 GiB / 9,531,392.
    expect(database.maxConnections).toBe(337);
    const large = new rds.DatabaseCluster(stack, 'Large', {
      engine: rds.DatabaseClusterEngine.auroraPostgres({ version: rds.AuroraPostgresEngineVersion.VER_16_6 }),
      writer: rds.ClusterInstance.serverlessV2('Writer'),
      serverlessV2MaxCapacity: 64,
      vpc,
    });
    // The least capacity is half a unit, and Aurora then allows no more.
    expect(Database.fromCluster(large, { databaseName: 'app' }).maxConnections).toBe(2_000);
  });

  it('that pauses is given the time to wake up, and it is said what keeps it awake', () => {
    const { stack, vpc } = world();
    const pausing = (id: string, seconds: number) =>
      new rds.DatabaseCluster(stack, id, {
        engine: rds.DatabaseClusterEngine.auroraPostgres({
          version: rds.AuroraPostgresEngineVersion.VER_16_6,
        }),
        writer: rds.ClusterInstance.serverlessV2('Writer'),
        serverlessV2MinCapacity: 0,
        serverlessV2AutoPauseDuration: Duration.seconds(seconds),
        vpc,
      });
    const database = Database.fromCluster(pausing('Pausing', 600), { databaseName: 'app' });
    expect(database.settings()).toMatchObject({ connectSeconds: 40 });
    expect(world().database.settings()).not.toHaveProperty('connectSeconds');
    const patient = { databaseName: 'app', connectTimeout: Duration.minutes(1) };
    expect(Database.fromCluster(pausing('Other', 300), patient).settings()).toMatchObject({
      connectSeconds: 60,
    });
    relayboxIn({ stack, vpc, database }, { relay: { sweepInterval: Duration.hours(1) } });
    Annotations.fromStack(stack).hasWarning(
      '/Orders/Relaybox',
      Match.stringLikeRegexp('It pauses after 600 s without a connection, and 1 sweep runs.*Maintain'),
    );
  });

  it('of another engine is refused, by name', () => {
    const { stack, vpc } = world();
    const mysql = new rds.DatabaseInstance(stack, 'MySql', { engine: rds.DatabaseInstanceEngine.MYSQL, vpc });
    expect(() => Database.fromInstance(mysql, { databaseName: 'app' })).toThrow(
      'Relaybox runs on PostgreSQL and SQL Server; this database is mysql',
    );
  });

  it('may stand in a stack of its own', () => {
    const app = new App({ context: { 'aws:cdk:bundling-stacks': [] } });
    const base = new Stack(app, 'Base');
    const vpc = new ec2.Vpc(base, 'Vpc', { maxAzs: 2, natGateways: 1 }) as ec2.IVpc;
    const instance = new rds.DatabaseInstance(base, 'Instance', {
      engine: rds.DatabaseInstanceEngine.postgres({ version: rds.PostgresEngineVersion.VER_17 }),
      vpc,
    });
    const stack = new Stack(app, 'Orders');
    const relaybox = new Relaybox(stack, 'Relaybox', {
      source: 'orders-service',
      database: Database.fromInstance(instance, { databaseName: 'app' }),
    });
    relaybox.addHandler('OrderPlaced', { messageType: 'order.placed', code: inline });
    expect(() => app.synth()).not.toThrow();
    Template.fromStack(stack).hasResourceProperties('AWS::EC2::SecurityGroupIngress', {
      SourceSecurityGroupId: {
        'Fn::GetAtt': [Match.stringLikeRegexp('^RelayboxNetworkSecurityGroup'), 'GroupId'],
      },
    });
  });
});

describe('Relaybox', () => {
  it('synthesises with the flags that new apps have, and without any', () => {
    for (const context of [recommended.default, {}]) {
      const parts = world(context);
      const relaybox = relayboxIn(parts, { inboxes: [{ source: 'payments-service' }] });
      relaybox.addHandler('OrderPlaced', { messageType: 'order.placed', code: inline });
      expect(() => Template.fromStack(parts.stack)).not.toThrow();
    }
  });

  it('makes the same template each time', () => {
    const templates = [world(), world()].map((parts) => {
      const relaybox = relayboxIn(parts, { inboxes: [{ source: 'payments-service' }] });
      relaybox.addHandler('OrderPlaced', {
        messageType: 'order.placed',
        entry: 'examples/orders/invoice-on-order-placed.ts',
      });
      return Template.fromStack(parts.stack).toJSON();
    });
    expect(templates[1]).toEqual(templates[0]);
  });

  it('stands twice in an account with alarms of its own: its service name has its path', () => {
    const parts = world();
    const one = relayboxIn(parts);
    const other = new Relaybox(parts.stack, 'Other', { source: 'orders-service', database: parts.database });
    expect(one.serviceName).not.toBe(other.serviceName);
    expect(() => Template.fromStack(parts.stack)).not.toThrow();
  });

  it('can be extended: each part has a place where it is made', () => {
    const made: string[] = [];
    class Ours extends Relaybox {
      protected override createRelay(props: RelayboxProps) {
        made.push('relay');
        return super.createRelay({ ...props, relay: { memorySize: 2048 } });
      }
    }
    const { stack, database } = world();
    new Ours(stack, 'Relaybox', { source: 'orders-service', database });
    expect(made).toEqual(['relay']);
    Template.fromStack(stack).hasResourceProperties('AWS::Lambda::Function', { MemorySize: 2048 });
  });
});
