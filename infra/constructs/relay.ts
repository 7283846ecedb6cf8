import { Duration } from 'aws-cdk-lib';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { defaults } from '../../shared/delivery/defaults.ts';
import { bundle } from './bundles.ts';
import type { Destination } from './destination.ts';
import type { Engine } from './engine.ts';
import { type Common, OwnFunction } from './own-function.ts';
import { Sweep } from './sweep.ts';
import { WakeQueue } from './wake-queue.ts';

/** How the relay works. */
export interface RelayOptions {
  /**
   * `scheduled` drains what is due and ends; it is woken after each commit, and swept. `continuous` polls until the
   * invocation's end, for producers that can't reach SQS: it costs a function that always runs.
   * @default 'scheduled'
   */
  readonly mode?: 'scheduled' | 'continuous';
  /** How often it runs without a wake. With a database that pauses by itself, make it sparse. @default Duration.minutes(1) */
  readonly sweepInterval?: Duration;
  /** @default Duration.seconds(60); in `continuous` mode the sweep's interval */
  readonly timeout?: Duration;
  /** Megabytes. @default 512 */
  readonly memorySize?: number;
  /** Relays that wakes start side by side. Each takes other buckets. SQS allows no fewer than 2. @default 2 */
  readonly maxConcurrency?: number;
  /** Must leave room for the wakes' and the sweep's. @default - from the account's pool */
  readonly reservedConcurrentExecutions?: number;
  /** Messages in one claim. @default 50 */
  readonly batchSize?: number;
  /** Destinations and batches under way at once. @default 4 */
  readonly parallelism?: number;
  /** Its lease on a bucket, extended as it works. @default Duration.seconds(30) */
  readonly lease?: Duration;
  /** What becomes of a row that is published: `keep`, `delete` or `archive`. @default 'keep' */
  readonly afterSuccess?: 'keep' | 'delete' | 'archive';
  /** What happens behind a message of a key that is Failed for good: `block` or `skip`. @default 'block' */
  readonly onFailedKey?: 'block' | 'skip';
  /** The wake queue, standard, where it is made elsewhere. @default - one is made */
  readonly wakeQueue?: sqs.IQueue;
}

/** The relay's parts. */
export interface RelayProps extends RelayOptions {
  readonly common: Common;
  readonly engine: Engine;
  readonly destinations: Readonly<Record<string, Destination>>;
  /** `RELAYBOX_DESTINATIONS` */
  readonly destinationSettings: string;
}

/** The outbox's relay: a function, the queue that wakes it, and its sweep. */
export class Relay extends Construct {
  readonly function: lambda.Function;
  readonly wakeQueue: WakeQueue;
  readonly sweep: Sweep;
  readonly timeout: Duration;
  readonly maxConcurrency: number;
  readonly leaseSeconds: number;

  constructor(scope: Construct, id: string, props: RelayProps) {
    super(scope, id);
    const interval = props.sweepInterval ?? Duration.minutes(1);
    this.timeout = props.timeout ?? (props.mode === 'continuous' ? interval : Duration.seconds(60));
    this.maxConcurrency = props.maxConcurrency ?? 2;
    this.leaseSeconds = props.lease?.toSeconds() ?? defaults.bucketLeaseSeconds;
    this.wakeQueue = new WakeQueue(this, 'Wake', {
      functionTimeout: this.timeout,
      ...(props.wakeQueue && { queue: props.wakeQueue }),
    });
    this.function = this.createFunction(props);
    this.wakeQueue.grantWake(this.function);
    this.wakeQueue.wakes(this.function, this.maxConcurrency);
    for (const destination of Object.values(props.destinations)) destination.grantSend(this.function);
    this.sweep = new Sweep(this, 'Sweep', {
      function: this.function,
      interval,
      description: 'Publishes what no wake has announced: retries, delays, lost wakes',
    });
  }

  protected createFunction(props: RelayProps): lambda.Function {
    return new OwnFunction(this, 'Function', {
      common: props.common,
      code: bundle(props.engine, 'relay'),
      description: 'Relaybox: carries outbox messages to their destinations',
      memorySize: props.memorySize ?? 512,
      timeout: this.timeout,
      environment: {
        RELAYBOX_WAKE_QUEUE_URL: this.wakeQueue.url,
        RELAYBOX_DESTINATIONS: props.destinationSettings,
        ...relaySettings(props),
      },
      ...(props.reservedConcurrentExecutions !== undefined && {
        reservedConcurrentExecutions: props.reservedConcurrentExecutions,
      }),
    });
  }
}

/** What is left out keeps the function's own default. */
function relaySettings(props: RelayOptions): Record<string, string> {
  const settings: Record<string, string | undefined> = {
    RELAYBOX_MODE: props.mode,
    RELAYBOX_BATCH_SIZE: props.batchSize?.toString(),
    RELAYBOX_PARALLELISM: props.parallelism?.toString(),
    RELAYBOX_LEASE_SECONDS: props.lease?.toSeconds().toString(),
    RELAYBOX_AFTER_SUCCESS: props.afterSuccess,
    RELAYBOX_ON_FAILED_KEY: props.onFailedKey,
  };
  return Object.fromEntries(
    Object.entries(settings).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
