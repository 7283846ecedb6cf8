import type * as events from 'aws-cdk-lib/aws-events';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import type { QueueFacts } from '../checks/facts.ts';
import { type KnownQueueFacts, maxMessageBytes, queueFacts } from './queue-facts.ts';

/** What is said of a destination beside what it is. */
export interface DestinationOptions {
  /**
   * Whether its messages have partition keys. Where they do and the transport keeps no order, the synth says so.
   * @default - not known
   */
  readonly keyed?: boolean;
  /**
   * What happens behind a message of a key that is Failed for good: `block` or `skip`.
   * @default - the relay's `onFailedKey`
   */
  readonly onFailedKey?: 'block' | 'skip';
}

/** What is said of a queue. */
export interface QueueDestinationOptions extends DestinationOptions {
  /** What an imported queue doesn't reveal. @default - read from the queue, where it is the CDK's */
  readonly queueFacts?: KnownQueueFacts;
}

/** What is said of a bus. */
export interface EventBusDestinationOptions extends DestinationOptions {
  /**
   * Whether the bus's own KMS key lets EventBridge use it, where the bus has one: its policy needs events.amazonaws.com
   * with kms:GenerateDataKey, kms:Decrypt and kms:DescribeKey.
   * @default - not known
   */
  readonly keyAllowsEvents?: boolean;
}

/** A queue or a bus that messages are sent to, under a logical name. */
export abstract class Destination {
  /** An SQS queue, standard or FIFO. */
  static queue(queue: sqs.IQueue, options: QueueDestinationOptions = {}): Destination {
    return new QueueDestination(queue, options);
  }

  /** An EventBridge bus. */
  static eventBus(bus: events.IEventBus, options: EventBusDestinationOptions = {}): Destination {
    return new EventBusDestination(bus, options);
  }

  /** How the relay finds it: its part of `RELAYBOX_DESTINATIONS`. */
  abstract settings(): Record<string, unknown>;
  /** What producers need to know of it: its part of `RELAYBOX_DESTINATION_LIMITS`. */
  abstract limits(): Record<string, unknown>;
  /** Lets the relay send. */
  abstract grantSend(relay: iam.IGrantable): void;

  /** The queue, where it is one. */
  readonly queue: sqs.IQueue | undefined = undefined;
  /** The bus, where it is one. */
  readonly eventBus: events.IEventBus | undefined = undefined;
  /** Whether its messages have partition keys, as far as said. */
  readonly keyed: boolean | undefined;
  readonly onFailedKey: 'block' | 'skip' | undefined;

  protected constructor(options: DestinationOptions) {
    this.keyed = options.keyed;
    this.onFailedKey = options.onFailedKey;
  }
}

/** An SQS queue as a destination. */
export class QueueDestination extends Destination {
  override readonly queue: sqs.IQueue;
  /** What is known of it. */
  readonly facts: QueueFacts;
  readonly #known: KnownQueueFacts | undefined;

  constructor(queue: sqs.IQueue, options: QueueDestinationOptions) {
    super(options);
    this.queue = queue;
    this.#known = options.queueFacts;
    this.facts = queueFacts(queue, this.#known);
  }

  settings(): Record<string, unknown> {
    const { queue, onFailedKey } = this;
    return { type: 'sqs', url: queue.queueUrl, fifo: queue.fifo, ...(onFailedKey && { onFailedKey }) };
  }

  limits(): Record<string, unknown> {
    // Read when it is asked for: the queue may be changed after the destination was made of it.
    const maxBytes = maxMessageBytes(this.queue, this.#known);
    return { type: 'sqs', ...(maxBytes !== undefined && { maxBytes }) };
  }

  grantSend(relay: iam.IGrantable): void {
    this.queue.grantSendMessages(relay);
  }
}

/** An EventBridge bus as a destination. */
export class EventBusDestination extends Destination {
  override readonly eventBus: events.IEventBus;
  /** Whether its own key lets EventBridge use it, as far as said. */
  readonly keyAllowsEvents: boolean | undefined;

  constructor(bus: events.IEventBus, options: EventBusDestinationOptions) {
    super(options);
    this.eventBus = bus;
    this.keyAllowsEvents = options.keyAllowsEvents;
  }

  settings(): Record<string, unknown> {
    const { eventBus, onFailedKey } = this;
    return { type: 'eventbridge', bus: eventBus.eventBusArn, ...(onFailedKey && { onFailedKey }) };
  }

  limits(): Record<string, unknown> {
    return { type: 'eventbridge' };
  }

  grantSend(relay: iam.IGrantable): void {
    this.eventBus.grantPutEventsTo(relay);
    // EventBridge answers success for a bus that isn't there: the relay looks first.
    iam.Grant.addToPrincipal({
      grantee: relay,
      actions: ['events:DescribeEventBus'],
      resourceArns: [this.eventBus.eventBusArn],
    });
  }
}
