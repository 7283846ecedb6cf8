import { Duration, Validations } from 'aws-cdk-lib';
import type * as iam from 'aws-cdk-lib/aws-iam';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { LATEST_SECONDS } from '../../shared/outbox/wake.ts';

/** How a wake queue is made. */
export interface WakeQueueProps {
  /** The timeout of the function that it wakes. */
  readonly functionTimeout: Duration;
  /** A queue made elsewhere, standard. @default - one is made */
  readonly queue?: sqs.IQueue;
}

/**
 * A wake is a hint: losing it costs latency, up to the next sweep. One that has waited for five minutes is of no use. SQS
 * counts from the send, so the delay of a wake for a later retry counts too: a shorter retention would drop it unseen.
 */
const RETENTION = Duration.seconds(LATEST_SECONDS + 300);
/** Lambda's advice, so that a message of a throttled invocation isn't given out while the poller still holds it. */
const VISIBILITY_FACTOR = 6;

/**
 * The queue that wakes a relay or a handler. It has no dead-letter queue: the database is the truth, and a wake that
 * nobody takes is replaced by the sweep.
 */
export class WakeQueue extends Construct {
  readonly queue: sqs.IQueue;

  constructor(scope: Construct, id: string, props: WakeQueueProps) {
    super(scope, id);
    if (props.queue?.fifo) {
      // SQS takes no delay of a single message there, nor a message without a group.
      throw new Error(`${props.queue.node.path} is a FIFO queue: a wake queue must be standard`);
    }
    this.queue = props.queue ?? this.createQueue(props);
  }

  get url(): string {
    return this.queue.queueUrl;
  }

  /** Lets a function send wakes. */
  grantWake(grantee: iam.IGrantable): void {
    this.queue.grantSendMessages(grantee);
  }

  /** Invokes the function at each wake. Several wakes that are there together are one invocation. */
  wakes(fn: lambda.IFunction, maxConcurrency: number): void {
    fn.addEventSource(new SqsEventSource(this.queue, { batchSize: 10, maxConcurrency }));
  }

  protected createQueue(props: WakeQueueProps): sqs.Queue {
    const queue = new sqs.Queue(this, 'Queue', {
      visibilityTimeout: Duration.seconds(props.functionTimeout.toSeconds() * VISIBILITY_FACTOR),
      retentionPeriod: RETENTION,
      encryption: sqs.QueueEncryption.SQS_MANAGED,
      enforceSSL: true,
    });
    Validations.of(queue).acknowledge({
      id: 'AwsSolutions-SQS3',
      reason:
        'A wake carries nothing: the database is the truth, and the sweep does what a lost wake would have done',
    });
    return queue;
  }
}
