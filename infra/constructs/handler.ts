import { Duration } from 'aws-cdk-lib';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { defaults } from '../../shared/delivery/defaults.ts';
import { type Common, OwnFunction } from './own-function.ts';
import { Sweep } from './sweep.ts';
import { asWorker, codeOf, type UserCode } from './user-function.ts';
import { WakeQueue } from './wake-queue.ts';

/** A handler: one function for one message type. One of `entry`, `code` and `function` says what it is. */
export interface HandlerProps extends UserCode {
  /** The type that it handles; as in its `inboxHandler`. */
  readonly messageType: string;
  /** @default Duration.seconds(30) */
  readonly timeout?: Duration;
  /** Megabytes. @default 512 */
  readonly memorySize?: number;
  /** Whose copies it handles; as in its `inboxHandler`, or said here alone. @default '' the default consumer */
  readonly consumer?: string;
  /** Invocations that wakes start side by side. SQS allows no fewer than 2. @default 2 */
  readonly maxConcurrency?: number;
  /** @default - from the account's pool */
  readonly reservedConcurrentExecutions?: number;
  /** The `parallelism` of its `inboxHandler`, for the connection budget. @default 4 */
  readonly parallelism?: number;
  /** How often it runs without a wake. @default Duration.minutes(1) */
  readonly sweepInterval?: Duration;
  /** The wake queue, standard, where it is made elsewhere. @default - one is made */
  readonly wakeQueue?: sqs.IQueue;
}

/** A handler's parts. */
export interface HandlerConstructProps extends HandlerProps {
  readonly common: Common;
}

/** A handler's function, the queue that wakes it, and its sweep. */
export class Handler extends Construct {
  readonly function: lambda.Function;
  readonly wakeQueue: WakeQueue;
  readonly sweep: Sweep;
  readonly messageType: string;
  readonly consumer: string;
  readonly timeout: Duration;
  readonly maxConcurrency: number;
  /** The size of one instance's pool: what runs side by side, and one for the store. */
  readonly connections: number;
  /** Its lease on a message, as its environment has it. */
  readonly lease: { readonly minimumSeconds: number; readonly marginSeconds: number };

  constructor(scope: Construct, id: string, props: HandlerConstructProps) {
    super(scope, id);
    this.messageType = props.messageType;
    this.consumer = props.consumer ?? '';
    this.timeout = props.function?.timeout ?? props.timeout ?? Duration.seconds(30);
    this.maxConcurrency = props.maxConcurrency ?? 2;
    this.connections = (props.parallelism ?? defaults.parallelism) + 1;
    this.lease = leaseOf(props.environment);
    this.wakeQueue = new WakeQueue(this, 'Wake', {
      functionTimeout: this.timeout,
      ...(props.wakeQueue && { queue: props.wakeQueue }),
    });
    this.function = props.function ? asWorker(props.function) : this.createFunction(props);
    this.wakeQueue.wakes(this.function, this.maxConcurrency);
    this.sweep = new Sweep(this, 'Sweep', {
      function: this.function,
      interval: props.sweepInterval ?? Duration.minutes(1),
      description: `Handles what no wake has announced of ${props.messageType}`,
    });
  }

  protected createFunction(props: HandlerConstructProps): lambda.Function {
    return new OwnFunction(this, 'Function', {
      common: props.common,
      code: codeOf(`The handler of ${props.messageType}`, props),
      description: `Handles ${props.messageType}`,
      memorySize: props.memorySize ?? 512,
      timeout: this.timeout,
      environment: props.environment ?? {},
      ...(props.reservedConcurrentExecutions !== undefined && {
        reservedConcurrentExecutions: props.reservedConcurrentExecutions,
      }),
    });
  }
}

function leaseOf(environment: HandlerProps['environment'] = {}): Handler['lease'] {
  const seconds = (name: string, otherwise: number) => Number(environment[name] ?? otherwise);
  return {
    minimumSeconds: seconds('RELAYBOX_MESSAGE_LEASE_SECONDS', defaults.messageLeaseSeconds),
    marginSeconds: seconds('RELAYBOX_LEASE_MARGIN_SECONDS', defaults.leaseMarginSeconds),
  };
}
