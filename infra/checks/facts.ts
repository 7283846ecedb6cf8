/**
 * What the checks know of a deployment: plain values, collected by the constructs, so that each check is a function
 * from values to an answer and knows nothing of the CDK.
 *
 * `undefined` always means "not revealed" (an imported queue, a token, a looked-up VPC): the check that needs the value
 * then answers *unknown* and names the prop that supplies it. What is known to be absent has a word of its own.
 */
export interface DeploymentFacts {
  readonly engine: 'postgres' | 'sqlserver';
  readonly functions: readonly FunctionFacts[];
  readonly eventSources: readonly EventSourceFacts[];
  readonly schedules: readonly ScheduleFacts[];
  readonly inboxes: readonly InboxFacts[];
  readonly handlers: readonly HandlerFacts[];
  readonly consumers: readonly ConsumerFacts[];
  /** How long receipts are kept, by which a direct consumer knows a redelivery. */
  readonly receiptRetentionDays: number;
  readonly destinations: readonly DestinationFacts[];
  readonly database: DatabaseFacts;
  readonly network: NetworkFacts;
}

/** A function that uses the database: Relaybox's own, the handlers, and those with `grantProduce`. */
export interface FunctionFacts {
  /** How it is called in messages: its construct path. Event sources and schedules refer to it. */
  readonly id: string;
  readonly role: 'relay' | 'ingest' | 'handler' | 'consumer' | 'producer' | 'maintain' | 'migrate';
  readonly timeoutSeconds: number | undefined;
  /** `none` where it takes from the account's pool. */
  readonly reservedConcurrency: number | 'none' | undefined;
  /**
   * The most instances at once, where whoever wired the function says so (`grantProduce(fn, { maxConcurrency })`).
   * Otherwise it is the reservation, or the sum over event sources and schedules.
   */
  readonly maxConcurrency: number | undefined;
  /** The size of one instance's pool of database connections. */
  readonly connections: number | undefined;
  readonly lease: LeaseFacts;
  /** Retries of an asynchronous invocation (`retryAttempts` of the function). Lambda's own default is 2. */
  readonly asyncRetryAttempts: number | undefined;
  /** How long Lambda keeps what it can't run now, such as what it throttles (`maxEventAge`). Its own default is six hours. */
  readonly asyncMaxEventAgeSeconds: number | undefined;
}

/** How long a function holds what it has claimed. */
export type LeaseFacts =
  | { readonly kind: 'none' }
  /** A handler's: until the invocation's end and the margin, or the minimum where that is longer. Never renewed. */
  | { readonly kind: 'invocation'; readonly minimumSeconds: number; readonly marginSeconds: number }
  /** A relay's, on buckets: extended by each settle, so it must outlast one round of publishing. */
  | { readonly kind: 'extended'; readonly seconds: number };

/** An SQS event source of a function: an inbox's queue, a wake queue, a queue of `sqsConsumer`. */
export interface EventSourceFacts {
  /** `id` of the function. */
  readonly function: string;
  readonly queue: QueueFacts;
  readonly batchingWindowSeconds: number | undefined;
  /** `none` where the event source scales without limit of its own. */
  readonly maxConcurrency: number | 'none' | undefined;
  /** Wakes may be lost: the sweep is the guarantee. Such a queue needs no dead-letter queue and no receive count. */
  readonly wake: boolean;
  /** Whether it asks which records of a batch failed (`reportBatchItemFailures`). */
  readonly reportsFailures: boolean | undefined;
}

/** An SQS queue. */
export interface QueueFacts {
  /** Its construct path. */
  readonly id: string;
  readonly fifo: boolean | undefined;
  readonly visibilitySeconds: number | undefined;
  readonly retentionSeconds: number | undefined;
  /** `none` where it is known to have no dead-letter queue. */
  readonly deadLetterQueue: DeadLetterQueueFacts | 'none' | undefined;
  /**
   * `sqs` and `none` let every AWS service deliver. `kms-managed` is the key alias/aws/sqs, whose policy nobody can change.
   * `kms` is a key of the user's.
   */
  readonly encryption: 'none' | 'sqs' | 'kms-managed' | 'kms' | undefined;
  /** With `kms`: whether the key's policy lets EventBridge (events.amazonaws.com) use it. */
  readonly keyAllowsEvents: boolean | undefined;
  /** Whether an EventBridge rule delivers to it. */
  readonly fedByEventBridge: boolean | undefined;
}

export interface DeadLetterQueueFacts {
  readonly id: string;
  readonly fifo: boolean | undefined;
  readonly retentionSeconds: number | undefined;
  readonly maxReceiveCount: number | undefined;
}

/** A schedule that invokes a function: the relay's sweep, a handler's, maintenance. */
export interface ScheduleFacts {
  readonly id: string;
  /** `id` of the function. */
  readonly function: string;
  readonly intervalSeconds: number | undefined;
  /** EventBridge Scheduler's own default is 185. */
  readonly retryAttempts: number | undefined;
  /** EventBridge Scheduler's own default is a day. */
  readonly maxEventAgeSeconds: number | undefined;
}

/** One of `inboxes`. */
export interface InboxFacts {
  readonly source: string;
  readonly consumer: string;
  readonly queue: QueueFacts;
  readonly retentionDays: number;
}

/** One of `addHandler`, or of the user's own functions that the construct knows of. */
export interface HandlerFacts {
  /** `id` of the function. */
  readonly function: string;
  readonly consumer: string;
  readonly messageType: string;
}

/** One of `addConsumer`: a function by `sqsConsumer`. */
export interface ConsumerFacts {
  /** `id` of the function. */
  readonly function: string;
  readonly consumer: string;
}

/** One of `destinations`. */
export interface DestinationFacts {
  /** The logical name. */
  readonly name: string;
  readonly transport: 'sqs' | 'sqs-fifo' | 'eventbridge' | undefined;
  /** Whether its messages carry partition keys, as whoever declares it says. */
  readonly keyed: boolean | undefined;
  /** A queue's facts, where the destination is a queue. */
  readonly queue?: QueueFacts;
  /** A bus's encryption, where the destination is a bus. `aws` is the key that AWS owns. */
  readonly busEncryption?: 'aws' | BusKeyFacts | undefined;
}

/** A bus's own KMS key. */
export interface BusKeyFacts {
  readonly keyId: string;
  /** Whether the key's policy gives events.amazonaws.com kms:GenerateDataKey, kms:Decrypt and kms:DescribeKey. */
  readonly allowsEvents: boolean | undefined;
}

/** The database's side of the connection budget, and how one logs in. */
export interface DatabaseFacts {
  readonly id: string;
  /** What the server allows; behind RDS Proxy what the proxy allows its clients. */
  readonly maxConnections: number | undefined;
  /** What other applications hold at most, as far as declared. */
  readonly otherConnections: number;
  /** After how many seconds without a connection it pauses by itself. Undefined where it doesn't, or isn't known to. */
  readonly pausesAfterSeconds: number | undefined;
  /** IAM tokens are signed without a call; a secret is read from Secrets Manager. */
  readonly credentials: 'secret' | 'iam';
}

/** The way from the functions to AWS's services. */
export type NetworkFacts =
  /** Functions outside a VPC reach everything. */
  | { readonly kind: 'public' }
  /** `egress: 'provided'`: whoever deploys answers for the way (a transit gateway, a proxy, a firewall). */
  | { readonly kind: 'provided' }
  | {
      readonly kind: 'vpc';
      readonly id: string;
      /**
       * Where the functions' subnets route to: a NAT, nothing, or an internet gateway (of no use to a function, which has
       * no public address).
       */
      readonly route: RouteFacts;
      /** Functions of the user's in subnets of their own of this VPC, where those route elsewhere. */
      readonly elsewhere: readonly { readonly function: string; readonly route: RouteFacts }[];
      readonly endpoints: readonly EndpointFacts[] | undefined;
    };

/** A default route, the worst of some subnets'. */
export type RouteFacts = 'nat' | 'none' | 'internet-gateway' | undefined;

/** An interface endpoint of the VPC. */
export interface EndpointFacts {
  readonly service: AwsService;
  /** Without private DNS the SDK resolves the public name and never meets the endpoint. */
  readonly privateDns: boolean | undefined;
}

/** The services that Relaybox's functions call, by the name in their endpoint. */
export type AwsService = 'sqs' | 'events' | 'secretsmanager';
