import { Duration } from 'aws-cdk-lib';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { QueueFacts } from '../checks/facts.ts';
import { arrivalQueue, deadLetterQueueOf } from './arrival-queue.ts';
import { bundle } from './bundles.ts';
import type { Engine } from './engine.ts';
import { type Common, OwnFunction } from './own-function.ts';
import { configure } from './producer.ts';
import { type KnownQueueFacts, queueFacts } from './queue-facts.ts';
import { Sweep } from './sweep.ts';
import { asWorker, codeOf, type UserCode } from './user-function.ts';

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
  /**
   * An ingest function of one's own: `createIngest` with a mapping, for records in an envelope of their own. One of
   * `entry`, `code` and `function` says what it is.
   * @default - the ready one, which knows Relaybox's messages, EventBridge's, SNS's and CloudEvents
   */
  readonly ingest?: UserCode;
  /** Messages in one invocation; more than 10 need a batching window, and a standard queue. @default 10 */
  readonly batchSize?: number;
  /** How long to wait for a batch to fill. @default - not at all */
  readonly maxBatchingWindow?: Duration;
  /** Invocations side by side. SQS allows no fewer than 2. @default 2 */
  readonly maxConcurrency?: number;
  /** @default Duration.seconds(30); of an `ingest.function` its own */
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
    this.timeout = inbox.ingest?.function?.timeout ?? inbox.timeout ?? Duration.seconds(30);
    this.maxConcurrency = inbox.maxConcurrency ?? 2;
    this.batchingWindow = inbox.maxBatchingWindow ?? Duration.seconds(0);
    this.queue = inbox.queue ?? this.createQueue();
    this.facts = queueFacts(this.queue, inbox.queueFacts);
    const theirs = inbox.ingest?.function;
    this.function = theirs ? asWorker(theirs) : this.createFunction(props);
    configure(this.function, { ...props.common.environment, ...settingsOf(props) });
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
    return deadLetterQueueOf(this.queue);
  }

  protected createQueue(): sqs.Queue {
    return arrivalQueue(this, { functionTimeout: this.timeout, batchingWindow: this.batchingWindow });
  }

  protected createFunction(props: IngestProps): lambda.Function {
    const { common, engine, inbox } = props;
    const { ingest } = inbox;
    return new OwnFunction(this, 'Function', {
      common,
      code: ingest ? codeOf(`The ingest of ${inbox.source}`, ingest) : bundle(engine, 'ingest'),
      description: `Relaybox: stores what arrives from ${inbox.source}, once`,
      memorySize: inbox.memorySize ?? 256,
      timeout: this.timeout,
      environment: ingest?.environment ?? {},
      ...(inbox.reservedConcurrentExecutions !== undefined && {
        reservedConcurrentExecutions: inbox.reservedConcurrentExecutions,
      }),
    });
  }
}

function settingsOf({ inbox, inboxWakeQueueUrls }: IngestProps): Record<string, string> {
  return {
    RELAYBOX_INBOX_SOURCE: inbox.source,
    RELAYBOX_INBOX_WAKE_QUEUE_URLS: inboxWakeQueueUrls,
    ...(inbox.consumer && { RELAYBOX_CONSUMER: inbox.consumer }),
  };
}
