import { Duration } from 'aws-cdk-lib';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { defaults } from '../../shared/delivery/defaults.ts';
import type { QueueFacts } from '../checks/facts.ts';
import { arrivalQueue, deadLetterQueueOf } from './arrival-queue.ts';
import { type Common, OwnFunction } from './own-function.ts';
import { type KnownQueueFacts, queueFacts } from './queue-facts.ts';
import { asWorker, codeOf, type UserCode } from './user-function.ts';

/** A consumer straight from a queue: a function by `sqsConsumer`. One of `entry`, `code` and `function` says what it is. */
export interface ConsumerProps extends UserCode {
  /** Where its messages arrive. @default - a queue and its dead-letter queue are made, with what the checks ask for */
  readonly queue?: sqs.IQueue;
  /** What an imported queue doesn't reveal. @default - read from the queue, where it is the CDK's */
  readonly queueFacts?: KnownQueueFacts;
  /**
   * Each consumer of a message handles it once; as in its `sqsConsumer`, or said here alone. Two that get the same messages
   * need two names.
   * @default '' the default consumer
   */
  readonly consumer?: string;
  /** The source that identifies messages here. @default - what the sender calls itself */
  readonly source?: string;
  /** Messages in one invocation; more than 10 need a batching window, and a standard queue. @default 10 */
  readonly batchSize?: number;
  /** How long to wait for a batch to fill. @default - not at all */
  readonly maxBatchingWindow?: Duration;
  /** Invocations side by side. SQS allows no fewer than 2. @default 2 */
  readonly maxConcurrency?: number;
  /** The `parallelism` of its `sqsConsumer`, for the connection budget. @default 4 */
  readonly parallelism?: number;
  /** @default Duration.seconds(30); of a `function` its own */
  readonly timeout?: Duration;
  /** Megabytes. @default 512 */
  readonly memorySize?: number;
  /** @default - from the account's pool */
  readonly reservedConcurrentExecutions?: number;
}

/** A consumer's parts. */
export interface ConsumerConstructProps extends ConsumerProps {
  readonly common: Common;
}

/** A consumer's queue, and the function that handles what it brings, each message once. */
export class Consumer extends Construct {
  readonly function: lambda.Function;
  readonly queue: sqs.IQueue;
  readonly facts: QueueFacts;
  readonly consumer: string;
  readonly timeout: Duration;
  readonly batchingWindow: Duration;
  readonly maxConcurrency: number;
  /** The size of one instance's pool: what runs side by side, and one for the store. */
  readonly connections: number;

  constructor(scope: Construct, id: string, props: ConsumerConstructProps) {
    super(scope, id);
    this.consumer = props.consumer ?? '';
    this.timeout = props.function?.timeout ?? props.timeout ?? Duration.seconds(30);
    this.batchingWindow = props.maxBatchingWindow ?? Duration.seconds(0);
    this.maxConcurrency = props.maxConcurrency ?? 2;
    this.connections = (props.parallelism ?? defaults.parallelism) + 1;
    this.queue = props.queue ?? this.createQueue();
    this.facts = queueFacts(this.queue, props.queueFacts);
    this.function = props.function ? asWorker(props.function) : this.createFunction(props);
    this.function.addEventSource(
      new SqsEventSource(this.queue, {
        batchSize: props.batchSize ?? 10,
        maxConcurrency: this.maxConcurrency,
        // Its answer names what failed. Unasked for, all of the batch would be deleted.
        reportBatchItemFailures: true,
        ...(props.maxBatchingWindow && { maxBatchingWindow: props.maxBatchingWindow }),
      }),
    );
  }

  /** The dead-letter queue, where there is one and the CDK knows it. */
  get deadLetterQueue(): sqs.IQueue | undefined {
    return deadLetterQueueOf(this.queue);
  }

  protected createQueue(): sqs.Queue {
    return arrivalQueue(this, { functionTimeout: this.timeout, batchingWindow: this.batchingWindow });
  }

  protected createFunction(props: ConsumerConstructProps): lambda.Function {
    return new OwnFunction(this, 'Function', {
      common: props.common,
      code: codeOf(`The consumer ${this.node.path}`, props),
      description: `Handles what arrives on a queue${this.consumer && `, as ${this.consumer}`}`,
      memorySize: props.memorySize ?? 512,
      timeout: this.timeout,
      environment: props.environment ?? {},
      ...(props.reservedConcurrentExecutions !== undefined && {
        reservedConcurrentExecutions: props.reservedConcurrentExecutions,
      }),
    });
  }
}
