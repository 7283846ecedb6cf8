import { Duration } from 'aws-cdk-lib';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';

/** What the queue is for. */
export interface ArrivalQueueProps {
  /** Of the function that takes its messages. */
  readonly functionTimeout: Duration;
  readonly batchingWindow: Duration;
}

/**
 * A week in the queue, two in the dead-letter queue, and a week again after a redrive: together less than the 30 days for
 * which a message is known.
 */
const QUEUE_RETENTION = Duration.days(7);
const DEAD_LETTER_RETENTION = Duration.days(14);

/** Makes a queue for what arrives, and its dead-letter queue, as the checks want them. Both in the scope, `Queue` and `DeadLetterQueue`. */
export function arrivalQueue(scope: Construct, props: ArrivalQueueProps): sqs.Queue {
  const common = { encryption: sqs.QueueEncryption.SQS_MANAGED, enforceSSL: true };
  const deadLetterQueue = new sqs.Queue(scope, 'DeadLetterQueue', {
    ...common,
    retentionPeriod: DEAD_LETTER_RETENTION,
  });
  const { functionTimeout, batchingWindow } = props;
  return new sqs.Queue(scope, 'Queue', {
    ...common,
    visibilityTimeout: Duration.seconds(functionTimeout.toSeconds() * 6 + batchingWindow.toSeconds()),
    retentionPeriod: QUEUE_RETENTION,
    deadLetterQueue: { queue: deadLetterQueue, maxReceiveCount: 5 },
  });
}

/** The dead-letter queue of a queue that the CDK made; undefined where it has none, or nobody here knows. */
export function deadLetterQueueOf(queue: sqs.IQueue): sqs.IQueue | undefined {
  return queue instanceof sqs.Queue ? queue.deadLetterQueue?.queue : undefined;
}
