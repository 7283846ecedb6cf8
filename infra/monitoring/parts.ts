import type { Duration } from 'aws-cdk-lib';
import type { IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import type { IEventBus } from 'aws-cdk-lib/aws-events';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { IQueue } from 'aws-cdk-lib/aws-sqs';

/**
 * What alarms and the dashboard are made of. Plain references: `Monitoring` creates alarms and a dashboard, and nothing
 * that it watches. Ingests and handlers that come later are added with `addIngest` and `addHandler`.
 */
export interface MonitoringParts {
  /**
   * The dimension `service`: `POWERTOOLS_SERVICE_NAME` of every function named here, the handlers included. Two
   * Relayboxes of one account and region must differ in it, stages too, or each would ring for the other.
   */
  readonly service: string;
  /** `POWERTOOLS_METRICS_NAMESPACE` of the functions. @default 'Relaybox' */
  readonly namespace?: string;
  /** Where alarms, and their ends, are sent. @default - alarms change their state and tell nobody */
  readonly alarmTopic?: ITopic;
  /** The relay and its sweep. */
  readonly relay: ScheduledFunctionPart;
  /** The relay's wake queue, for the dashboard. @default - none */
  readonly wakeQueue?: IQueue;
  /** The maintain function and its schedule: where the lanes' figures come from. */
  readonly maintain: ScheduledFunctionPart;
  /** The outbox's lanes. */
  readonly destinations: readonly DestinationPart[];
  /** @default - none */
  readonly ingests?: readonly IngestPart[];
  /** @default - none */
  readonly handlers?: readonly HandlerPart[];
  /** Dead-letter queues beside the inboxes' own, such as one for failed asynchronous invocations. @default - none */
  readonly deadLetterQueues?: readonly DeadLetterQueuePart[];
  /** @default - its connections are not watched */
  readonly database?: DatabasePart;
  /** False leaves the dashboard out: CloudWatch gives three for nothing, and charges for more. @default true */
  readonly dashboard?: boolean;
  /** A due message older than this rings. @default Duration.minutes(5) */
  readonly oldestDueAge?: Duration;
  /**
   * False leaves out the alarms over metric math and over queries, which emulators don't have. @default true
   */
  readonly expressions?: boolean;
  /** Where the alarms' runbook stands, without anchor. @default - docs/operations.md of this package's repository */
  readonly runbookUrl?: string;
}

/** A function to be watched. */
export interface FunctionPart {
  /** For ids, titles and descriptions: `Relay`, `Ingest payments-service`, `Handler order.placed`. Unique here. */
  readonly name: string;
  readonly function: IFunction;
  /** Its timeout; an imported function doesn't tell it. @default - the function's own, else the duration isn't watched */
  readonly timeout?: Duration;
}

/** A function that a schedule invokes. */
export interface ScheduledFunctionPart extends FunctionPart {
  /** How often. Without a success for three times as long, it counts as not running. */
  readonly every: Duration;
}

/** A lane of the outbox. */
export interface DestinationPart {
  /** The logical name, which is the lane. */
  readonly name: string;
  /** @default - not a queue */
  readonly queue?: IQueue;
  /** @default - not an event bus */
  readonly eventBus?: IEventBus;
}

/** A function that takes what a queue brings: an ingest, or a consumer straight from its queue (`sqsConsumer`). */
export interface ConsumerPart extends FunctionPart {
  readonly queue: IQueue;
  /** @default - it has none, or isn't known */
  readonly deadLetterQueue?: IQueue;
}

/** An inbox: a queue, and the function that stores what it brings. */
export interface IngestPart extends ConsumerPart {
  readonly source: string;
}

/** A handler function; its lane is the message type, with the consumer before it unless that is the default one. */
export interface HandlerPart extends FunctionPart {
  readonly messageType: string;
  /** @default '' the default consumer */
  readonly consumer?: string;
  /** @default - not shown */
  readonly wakeQueue?: IQueue;
}

/** A dead-letter queue: whatever is in it, somebody must look. */
export interface DeadLetterQueuePart {
  /** For ids and titles. Unique here. */
  readonly name: string;
  readonly queue: IQueue;
}

/** The database's connections. */
export interface DatabasePart {
  /**
   * Connections in use, as a maximum: `DatabaseConnections` of the instance or cluster, `ClientConnections` of a proxy.
   * @default - not known (a database of a secret), and not watched
   */
  readonly connections?: IMetric;
  /** The limit: of the instance's size, or as the `maxConnections` prop says it. @default - not known, and not watched */
  readonly maxConnections?: number;
}
