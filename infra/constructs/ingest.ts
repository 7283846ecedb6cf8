import { Duration } from 'aws-cdk-lib';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { QueueFacts } from '../checks/facts.ts';
import { bundle } from './bundles.ts';
import type { Engine } from './engine.ts';
import { type Common, OwnFunction } from './own-function.ts';
import { type KnownQueueFacts, queueFacts } from './queue-facts.ts';
import { Sweep } from './sweep.ts';

/** An inbox: what arrives on a queue from one source. */
export interface InboxProps {
  /** Who sends: part of a message's identity, whatever the wire says. */
  readonly source: string;
  /** Where it arrives. @default - a queue and its dead-letter queue are made, with what the checks ask for */
  readonly queue?: sqs.IQueue;
  /** Whose copies these are, where several in one database take the same source. @default '' the default consumer */
  readonly consumer?: string;
  /** What an imported queue doesn't reveal. @default - read from the queue, where it is the CDK's */
  readonly queueFacts?: KnownQueueFacts;
  /** Messages in one invocation; more than 10 need a batching window, and a standard queue. @default 10 */
  readonly batchSize?: number;
  /** How long to wait for a batch to fill. @default - not at all */
  readonly maxBatchingWindow?: Duration;
  /** Invocations side by side. SQS allows no fewer than 2. @default 2 */
  readonly maxConcurrency?: number;
  /** @default Duration.seconds(30) */
  readonly timeout?: Duration;
  /** Megabytes. @default 256 */
  readonly memorySize?: number;
  /** @default - from the account's pool */
  readonly reservedConcurrentExecutions?: number;
  /** How often it looks for records that a person has requeued after a mapping was mended. @default Duration.minutes(5) */
  readonly sweepInterval?: Duration;
}

/** An inbox's parts. */
export interface IngestProps {
  readonly common: Common;
  readonly engine: Engine;
  readonly inbox: InboxProps;
  /** `RELAYBOX_INBOX_WAKE_QUEUE_URLS` */
  readonly inboxWakeQueueUrls: string;
}

/**
 * A week in the queue, two in the dead-letter queue, and a week again after a redrive: together less than the 30 days for
 * which the inbox knows a message.
 */
const QUEUE_RETENTION = Duration.days(7);
const DEAD_LETTER_RETENTION = Duration.days(14);

/** An inbox's queue, and the function that stores what it brings, each message once. */
export class Ingest extends Construct {
  readonly function: lambda.Function;
  readonly queue: sqs.IQueue;
  readonly facts: QueueFacts;
  readonly sweep: Sweep;
  readonly source: string;
  readonly consumer: string;
  readonly timeout: Duration;
  readonly maxConcurrency: number;
  readonly batchingWindow: Duration;

  constructor(scope: Construct, id: string, props: IngestProps) {
    super(scope, id);
    const { inbox } = props;
    this.source = inbox.source;
    this.consumer = inbox.consumer ?? '';
    this.timeout = inbox.timeout ?? Duration.seconds(30);
    this.maxConcurrency = inbox.maxConcurrency ?? 2;
    this.batchingWindow = inbox.maxBatchingWindow ?? Duration.seconds(0);
    this.queue = inbox.queue ?? this.createQueue();
    this.facts = queueFacts(this.queue, inbox.queueFacts);
    this.function = this.createFunction(props);
    this.function.addEventSource(
      new SqsEventSource(this.queue, {
        batchSize: inbox.batchSize ?? 10,
        maxConcurrency: this.maxConcurrency,
        reportBatchItemFailures: true,
        ...(inbox.maxBatchingWindow && { maxBatchingWindow: inbox.maxBatchingWindow }),
      }),
    );
    this.sweep = new Sweep(this, 'Sweep', {
      function: this.function,
      interval: inbox.sweepInterval ?? Duration.minutes(5),
      description: `Reads again what of ${inbox.source} was unreadable and has been requeued`,
    });
  }

  /** The dead-letter queue, where there is one and the CDK knows it. */
  get deadLetterQueue(): sqs.IQueue | undefined {
    return this.queue instanceof sqs.Queue ? this.queue.deadLetterQueue?.queue : undefined;
  }

  protected createQueue(): sqs.Queue {
    const common = { encryption: sqs.QueueEncryption.SQS_MANAGED, enforceSSL: true };
    const deadLetterQueue = new sqs.Queue(this, 'DeadLetterQueue', {
      ...common,
      retentionPeriod: DEAD_LETTER_RETENTION,
    });
    return new sqs.Queue(this, 'Queue', {
      ...common,
      visibilityTimeout: Duration.seconds(this.timeout.toSeconds() * 6 + this.batchingWindow.toSeconds()),
      retentionPeriod: QUEUE_RETENTION,
      deadLetterQueue: { queue: deadLetterQueue, maxReceiveCount: 5 },
    });
  }

  protected createFunction(props: IngestProps): lambda.Function {
    const { inbox } = props;
    return new OwnFunction(this, 'Function', {
      common: props.common,
      code: bundle(props.engine, 'ingest'),
      description: `Relaybox: stores what arrives from ${inbox.source}, once`,
      memorySize: inbox.memorySize ?? 256,
      timeout: this.timeout,
      environment: {
        RELAYBOX_INBOX_SOURCE: inbox.source,
        RELAYBOX_INBOX_WAKE_QUEUE_URLS: props.inboxWakeQueueUrls,
        ...(inbox.consumer && { RELAYBOX_CONSUMER: inbox.consumer }),
      },
      ...(inbox.reservedConcurrentExecutions !== undefined && {
        reservedConcurrentExecutions: inbox.reservedConcurrentExecutions,
      }),
    });
  }
}
