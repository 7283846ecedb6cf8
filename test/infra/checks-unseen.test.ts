import {
  Duration,
  aws_events as events,
  aws_lambda as lambda,
  aws_secretsmanager as secrets,
  aws_sqs as sqs,
} from 'aws-cdk-lib';
import { describe, expect, test, vi } from 'vitest';
import { Database, Destination } from '../../infra/index.ts';
import { imported, inbox, part, relayboxIn, saidOf } from './checked-app.ts';
import { inline } from './inline.ts';

// The checks look at what the functions are, not at what is in them.
vi.mock('../../infra/constructs/bundles.ts', async () => {
  const { inline } = await import('./inline.ts');
  return { bundle: () => inline };
});

// A synth is a second of work, and a machine may be busy.
vi.setConfig({ testTimeout: 90_000 });

describe('what cannot be seen is said, not passed over', () => {
  test('order is a warning, and the synth goes on', () => {
    const parts = part();
    relayboxIn(parts, {
      destinations: { orders: Destination.queue(new sqs.Queue(parts.stack, 'Orders'), { keyed: true }) },
    });
    const said = saidOf(parts);
    expect(said).toContain('WARNING order · destination orders');
    expect(said).not.toContain('Validation failed');
  });

  test('everything imported is unknown in one list, each with its prop', () => {
    const parts = part();
    const vpc = imported(parts);
    const theirs = sqs.Queue.fromQueueArn(parts.stack, 'Incoming', 'arn:aws:sqs:eu-west-1:111111111111:in');
    const secret = secrets.Secret.fromSecretNameV2(parts.stack, 'Db', 'db');
    const bus = events.EventBus.fromEventBusName(parts.stack, 'Bus', 'central');
    relayboxIn(parts, {
      database: Database.fromSecret(secret, { databaseName: 'app', hostname: 'db.internal', vpc }),
      destinations: { events: Destination.eventBus(bus) },
      ...inbox(theirs),
    });
    const said = saidOf(parts);
    for (const check of [
      'visibility',
      'inbox-retention',
      'connections',
      'receive-count',
      'egress',
      'dead-letter-queue',
      'event-bus-key',
      'order',
    ]) {
      expect(said).toContain(`UNKNOWN ${check} ·`);
    }
    for (const prop of ['queueFacts', 'maxConnections', "egress: 'provided'", 'keyAllowsEvents', 'keyed']) {
      expect(said).toContain(prop);
    }
  });

  test('the props supply the facts, and nothing is left to say', () => {
    const parts = part();
    const vpc = imported(parts);
    const theirs = sqs.Queue.fromQueueArn(parts.stack, 'Incoming', 'arn:aws:sqs:eu-west-1:111111111111:in');
    const secret = secrets.Secret.fromSecretNameV2(parts.stack, 'Db', 'db');
    const bus = events.EventBus.fromEventBusName(parts.stack, 'Bus', 'central');
    relayboxIn(parts, {
      egress: 'provided',
      database: Database.fromSecret(secret, {
        databaseName: 'app',
        hostname: 'db.internal',
        vpc,
        maxConnections: 84,
      }),
      destinations: { events: Destination.eventBus(bus, { keyed: false, keyAllowsEvents: true }) },
      inboxes: [
        {
          source: 'payments-service',
          queue: theirs,
          queueFacts: {
            visibilityTimeout: Duration.minutes(3),
            retention: Duration.days(4),
            deadLetterQueue: { maxReceiveCount: 5, retention: Duration.days(14), fifo: false },
            encryption: 'sqs',
          },
        },
      ],
    });
    expect(saidOf(parts)).toBe('');
  });

  test('a producer whose concurrency nobody limits is unknown', () => {
    const parts = part();
    const fn = new lambda.Function(parts.stack, 'PlaceOrder', {
      code: inline,
      handler: 'index.handler',
      runtime: lambda.Runtime.NODEJS_24_X,
      vpc: parts.vpc,
    });
    relayboxIn(parts).grantProduce(fn);
    expect(saidOf(parts)).toContain('UNKNOWN connections · App/PlaceOrder');
  });

  test('an accepted failure lets the synth pass, and its reason is shown', () => {
    const parts = part();
    relayboxIn(parts, {
      maintenance: { inboxRetention: Duration.days(5) },
      acceptedFindings: [{ check: 'inbox-retention', reason: 'the handlers are idempotent' }],
    });
    expect(saidOf(parts)).not.toContain('Validation failed');
  });
});
