import { Duration, Lazy, aws_lambda as lambda, type aws_sqs as sqs } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import { describe, expect, test, vi } from 'vitest';
import type { ConsumerProps, RelayboxProps } from '../../infra/index.ts';
import { type Parts, part, queue, relayboxIn, saidOf } from './checked-app.ts';
import { inline } from './inline.ts';

// Nothing here looks into the ready functions.
vi.mock('../../infra/constructs/bundles.ts', async () => {
  const { inline } = await import('./inline.ts');
  return { bundle: () => inline };
});

// A synth is a second of work, and a machine may be busy.
vi.setConfig({ testTimeout: 90_000 });

/** An app with one consumer, and its template. */
function consuming(props: ConsumerProps, over: Partial<RelayboxProps> = {}, parts: Parts = part()) {
  const relaybox = relayboxIn(parts, { inboxes: [], ...over });
  const consumer = relaybox.addConsumer('Emails', props);
  const template = Template.fromStack(parts.stack);
  const idOf = (construct: { node: { defaultChild?: unknown } }) =>
    parts.stack.getLogicalId(construct.node.defaultChild as lambda.CfnFunction);
  const fn = template.findResources('AWS::Lambda::Function')[idOf(consumer.function)]?.['Properties'];
  return { parts, relaybox, consumer, template, idOf, fn };
}

/** A function of the user's in the VPC. */
function ours({ stack, vpc }: Parts, props: Partial<lambda.FunctionProps> = {}): lambda.Function {
  return new lambda.Function(stack, 'Ours', {
    code: inline,
    handler: 'index.handler',
    runtime: lambda.Runtime.NODEJS_24_X,
    timeout: Duration.seconds(20),
    vpc,
    ...props,
  });
}

describe('a consumer straight from a queue', () => {
  test('is wired whole: what fails of a batch comes again, it may produce, and it is after the migration', () => {
    const { template, consumer, relaybox, fn, idOf } = consuming({
      code: inline,
      consumer: 'emails',
      source: 'orders-service',
      environment: { MAIL_FROM: 'shop@example.com' },
    });
    template.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      FunctionName: { Ref: idOf(consumer.function) },
      EventSourceArn: { 'Fn::GetAtt': [idOf(consumer.queue), 'Arn'] },
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      BatchSize: 10,
      ScalingConfig: { MaximumConcurrency: 2 },
    });
    expect(fn.Environment.Variables).toMatchObject({
      RELAYBOX_CONSUMER: 'emails',
      RELAYBOX_INBOX_SOURCE: 'orders-service',
      RELAYBOX_SOURCE: 'orders-service',
      RELAYBOX_WAKE_QUEUE_URL: { Ref: idOf(relaybox.relay.wakeQueue.queue) },
      RELAYBOX_DESTINATION_LIMITS: '{}',
      POWERTOOLS_SERVICE_NAME: relaybox.serviceName,
      MAIL_FROM: 'shop@example.com',
    });
    const [trigger = ''] = Object.keys(template.findResources('Custom::Trigger'));
    const resource = template.findResources('AWS::Lambda::Function')[idOf(consumer.function)];
    expect(resource?.['DependsOn']).toContain(trigger);
  });

  test('gets a queue and a dead-letter queue that the checks have nothing against', () => {
    const { template, consumer, idOf, parts } = consuming({ code: inline, timeout: Duration.seconds(50) });
    const queues = template.findResources('AWS::SQS::Queue');
    expect(queues[idOf(consumer.queue)]?.['Properties']).toMatchObject({
      VisibilityTimeout: 300,
      RedrivePolicy: {
        deadLetterTargetArn: { 'Fn::GetAtt': [idOf(consumer.deadLetterQueue as sqs.Queue), 'Arn'] },
        maxReceiveCount: 5,
      },
    });
    expect(saidOf(parts)).toBe('');
  });

  test('may be a function made elsewhere, which is wired like ours', () => {
    const parts = part();
    const { template, fn, idOf, consumer } = consuming({ function: ours(parts) }, {}, parts);
    expect(fn.RecursiveLoop).toBe('Allow');
    expect(Object.keys(fn.Environment.Variables)).toContain('RELAYBOX_DATABASE');
    template.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      FunctionName: { Ref: idOf(consumer.function) },
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    });
    // Its own timeout counts: 6 × 20 s.
    template.hasResourceProperties('AWS::SQS::Queue', { VisibilityTimeout: 120 });
  });

  test('is watched: its function, the age of its queue, and its dead-letter queue', () => {
    const { template, idOf, consumer } = consuming({ code: inline }, { monitoring: {} });
    const alarms = JSON.stringify(template.findResources('AWS::CloudWatch::Alarm'));
    for (const id of [consumer.function, consumer.queue, consumer.deadLetterQueue as sqs.Queue].map(idOf)) {
      expect(alarms).toContain(id);
    }
    expect(alarms).toContain('Consumer Emails: its queue has held a message');
  });

  test('without entry, code or function says what is missing', () => {
    expect(() => relayboxIn(part()).addConsumer('Emails', {})).toThrow(
      'The consumer App/Relaybox/Emails needs an entry, a code or a function',
    );
  });
});

describe("a consumer's receipts", () => {
  test('that its queues outlast fail the synth, with the figures', () => {
    const parts = part();
    const incoming = queue(parts, { retentionPeriod: Duration.days(14) });
    relayboxIn(parts).addConsumer('Emails', { code: inline, queue: incoming });
    expect(saidOf(parts)).toContain(
      "The 30 days for which a consumer's receipts are kept do not exceed 14 days in App/Incoming + 14 days in App/Dead + 14 days in the queue again after a redrive = 42 days",
    );
  });

  test('are kept as long as maintenance is told, and then the synth has nothing against it', () => {
    const parts = part();
    const retentionPeriod = Duration.days(13);
    const maintenance = { receiptRetention: Duration.days(41) };
    const { template, fn } = consuming(
      { code: inline, queue: queue(parts, { retentionPeriod }) },
      { maintenance },
      parts,
    );
    expect(fn).toBeDefined();
    expect(saidOf(parts)).toBe('');
    template.hasResourceProperties('AWS::Lambda::Function', {
      Description: Match.stringLikeRegexp('retention'),
      Environment: { Variables: Match.objectLike({ RELAYBOX_RECEIPT_RETENTION_DAYS: '41' }) },
    });
  });

  test('of a function with grantProduce and a queue are asked for too, as a warning', () => {
    const parts = part();
    const fn = ours(parts);
    const incoming = queue(parts, { retentionPeriod: Duration.days(14) });
    fn.addEventSource(new SqsEventSource(incoming, { reportBatchItemFailures: true, maxConcurrency: 2 }));
    relayboxIn(parts).grantProduce(fn, { maxConcurrency: 2, connections: 5 });
    const said = saidOf(parts);
    expect(said).toContain('WARNING receipt-retention · App/Ours');
    expect(said).not.toContain('batch-failures');
  });
});

test('a queue of messages before a handler of addHandler fails: it takes wakes, and would read none of them', () => {
  const parts = part();
  const incoming = queue(parts);
  const handler = relayboxIn(parts, { inboxes: [] }).addHandler('OrderPlaced', {
    messageType: 'order.placed',
    code: inline,
  });
  handler.function.addEventSource(new SqsEventSource(incoming, { reportBatchItemFailures: true }));
  const said = saidOf(parts);
  expect(said).toContain(`FAIL handlers · ${incoming.node.path} before ${handler.function.node.path}`);
  expect(said).toContain('give the queue to an inbox');
});

test('an event source of one’s own that asks for no failures is said: what an sqsConsumer answers would be deleted', () => {
  const parts = part();
  const fn = ours(parts);
  fn.addEventSource(new SqsEventSource(queue(parts), { maxConcurrency: 2 }));
  relayboxIn(parts).grantProduce(fn, { maxConcurrency: 2, connections: 5 });
  expect(saidOf(parts)).toContain('WARNING batch-failures · App/Ours');
});

describe("the application's own name for Powertools", () => {
  const named = { POWERTOOLS_SERVICE_NAME: 'shop', POWERTOOLS_METRICS_NAMESPACE: 'Shop' };
  const variablesOf = ({ stack }: Parts, fn: lambda.Function) =>
    Template.fromStack(stack).findResources('AWS::Lambda::Function')[
      stack.getLogicalId(fn.node.defaultChild as lambda.CfnFunction)
    ]?.['Properties'].Environment.Variables;

  test('is kept by grantProduce, and where there is none the function stands with Relaybox', () => {
    const parts = part();
    const relaybox = relayboxIn(parts);
    const [theirs, unnamed] = [
      ours(parts, { environment: named }),
      new lambda.Function(parts.stack, 'Unnamed', {
        code: inline,
        handler: 'index.handler',
        runtime: lambda.Runtime.NODEJS_24_X,
        vpc: parts.vpc,
      }),
    ];
    for (const fn of [theirs, unnamed]) relaybox.grantProduce(fn, { maxConcurrency: 1, connections: 1 });
    expect(variablesOf(parts, theirs)).toMatchObject(named);
    expect(variablesOf(parts, unnamed)).toMatchObject({ POWERTOOLS_SERVICE_NAME: relaybox.serviceName });
    expect(saidOf(parts)).toBe('');
  });

  test('is looked for without asking what is said later: a lazy value keeps what it says first', () => {
    const parts = part();
    let said = 'too early';
    const fn = ours(parts, { environment: { LATER: Lazy.string({ produce: () => said }) } });
    relayboxIn(parts).grantProduce(fn, { maxConcurrency: 1, connections: 1 });
    said = 'at the end';
    expect(variablesOf(parts, fn)).toMatchObject({ LATER: 'at the end' });
  });

  test('is kept by addHandler and addConsumer too, and it is said that alarms then see nothing of it', () => {
    const parts = part();
    const relaybox = relayboxIn(parts);
    const fn = ours(parts, { environment: named });
    relaybox.addHandler('OrderPlaced', { messageType: 'order.placed', function: fn });
    relaybox.addConsumer('Emails', { code: inline, environment: { POWERTOOLS_SERVICE_NAME: 'mail' } });
    expect(variablesOf(parts, fn)).toMatchObject(named);
    const warnings = Annotations.fromStack(parts.stack).findWarning(
      '*',
      Match.stringLikeRegexp('relaybox:other-service-name'),
    );
    expect(warnings.map(({ id }) => id)).toEqual(['/App/Ours', '/App/Relaybox/Emails/Function']);
    expect(String(warnings[0]?.entry.data)).toContain(
      `POWERTOOLS_SERVICE_NAME is shop, not ${relaybox.serviceName}, and POWERTOOLS_METRICS_NAMESPACE is Shop, not Relaybox`,
    );
  });
});
