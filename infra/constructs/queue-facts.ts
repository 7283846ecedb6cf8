import { type Duration, Token } from 'aws-cdk-lib';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import type { DeadLetterQueueFacts, QueueFacts } from '../checks/facts.ts';
import { allowsEvents } from './key-facts.ts';

/** What a queue of somebody else's doesn't reveal, said by who knows it. Each wins over what the CDK says. */
export interface KnownQueueFacts {
  /** @default - as the queue's name says */
  readonly fifo?: boolean;
  readonly visibilityTimeout?: Duration;
  readonly retention?: Duration;
  /** Its dead-letter queue. @default - read from the queue, where it is the CDK's */
  readonly deadLetterQueue?: KnownDeadLetterQueueFacts;
  /** It has no dead-letter queue. @default false */
  readonly noDeadLetterQueue?: boolean;
  /** `none`, `sqs`, `kms-managed` (alias/aws/sqs) or `kms` (a key of one's own). @default - as the CDK says */
  readonly encryption?: 'none' | 'sqs' | 'kms-managed' | 'kms';
  /** Whether the policy of its own key lets events.amazonaws.com use it. @default - not known */
  readonly keyAllowsEvents?: boolean;
  /** Whether an EventBridge rule delivers to it. @default - not known */
  readonly fedByEventBridge?: boolean;
  /** The queue's own maximum message size in bytes, 1,024 to 1,048,576. @default - as the CDK says, or what SQS takes */
  readonly maxMessageSizeBytes?: number;
}

/** What is known of a dead-letter queue. */
export interface KnownDeadLetterQueueFacts {
  readonly maxReceiveCount?: number;
  readonly retention?: Duration;
  /** @default - as the queue that it belongs to */
  readonly fifo?: boolean;
}

const DEFAULT_VISIBILITY_SECONDS = 30;
const DEFAULT_RETENTION_SECONDS = 4 * 24 * 3600;

/** What is known of a queue: what its construct says, and what is said of it beside that. */
export function queueFacts(queue: sqs.IQueue, known: KnownQueueFacts = {}): QueueFacts {
  const child = queue.node.defaultChild;
  const own = child instanceof sqs.CfnQueue ? child : undefined;
  return {
    id: queue.node.path,
    fifo: known.fifo ?? queue.fifo,
    visibilitySeconds:
      known.visibilityTimeout?.toSeconds() ??
      (own && settled(own.visibilityTimeout, DEFAULT_VISIBILITY_SECONDS)),
    retentionSeconds:
      known.retention?.toSeconds() ?? (own && settled(own.messageRetentionPeriod, DEFAULT_RETENTION_SECONDS)),
    deadLetterQueue: deadLetterQueueOf(queue, own, known),
    encryption: known.encryption ?? encryptionOf(queue, own),
    keyAllowsEvents: known.keyAllowsEvents ?? allowsEvents(queue.encryptionMasterKey),
    fedByEventBridge: known.fedByEventBridge,
  };
}

/** The most bytes that a queue takes, which may be a token; undefined where it has no size of its own, as far as known. */
export function maxMessageBytes(queue: sqs.IQueue, known: KnownQueueFacts = {}): number | undefined {
  const child = queue.node.defaultChild;
  return known.maxMessageSizeBytes ?? (child instanceof sqs.CfnQueue ? child.maximumMessageSize : undefined);
}

function deadLetterQueueOf(
  queue: sqs.IQueue,
  own: sqs.CfnQueue | undefined,
  known: KnownQueueFacts,
): QueueFacts['deadLetterQueue'] {
  if (known.noDeadLetterQueue) return 'none';
  const said = known.deadLetterQueue;
  const settings = queue instanceof sqs.Queue ? queue.deadLetterQueue : undefined;
  if (said === undefined && settings === undefined) {
    // A queue made on the lower level may have its policy as JSON.
    return own !== undefined && own.redrivePolicy === undefined ? 'none' : undefined;
  }
  const facts = settings && deadLetterFacts(settings);
  return {
    id: facts?.id ?? `${queue.node.path}'s dead-letter queue`,
    fifo: said?.fifo ?? facts?.fifo ?? queue.fifo,
    retentionSeconds: said?.retention?.toSeconds() ?? facts?.retentionSeconds,
    maxReceiveCount: said?.maxReceiveCount ?? facts?.maxReceiveCount,
  };
}

function deadLetterFacts({ queue, maxReceiveCount }: sqs.DeadLetterQueue): DeadLetterQueueFacts {
  const child = queue.node.defaultChild;
  const own = child instanceof sqs.CfnQueue ? child : undefined;
  return {
    id: queue.node.path,
    fifo: queue.fifo,
    retentionSeconds: own && settled(own.messageRetentionPeriod, DEFAULT_RETENTION_SECONDS),
    maxReceiveCount: settled(maxReceiveCount, undefined),
  };
}

function encryptionOf(queue: sqs.IQueue, own: sqs.CfnQueue | undefined): QueueFacts['encryption'] {
  if (queue.encryptionMasterKey !== undefined) return 'kms';
  if (own === undefined) return undefined;
  if (own.kmsMasterKeyId !== undefined) return own.kmsMasterKeyId === 'alias/aws/sqs' ? 'kms-managed' : 'kms';
  return own.sqsManagedSseEnabled === false ? 'none' : 'sqs';
}

/** A number, or the default of what is left out; undefined for a token, which nobody can read yet. */
function settled<Default>(value: number | undefined, otherwise: Default): number | Default | undefined {
  if (value === undefined) return otherwise;
  return Token.isUnresolved(value) ? undefined : value;
}
