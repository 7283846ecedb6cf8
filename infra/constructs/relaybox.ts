import { Lazy, Names, Stack } from 'aws-cdk-lib';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { laneLabel } from '../../shared/operations/maintain.ts';
import type { Monitoring } from '../monitoring/monitoring.ts';
import { sayThatNobodyIsTold, validateDeployment } from './check-deployment.ts';
import { commonOf, databaseSettings, ofDestinations, tableSettings } from './common.ts';
import { Consumer, type ConsumerProps } from './consumer.ts';
import { Handler, type HandlerProps } from './handler.ts';
import { type InboxProps, Ingest } from './ingest.ts';
import { Maintain } from './maintain.ts';
import { Migration } from './migration.ts';
import { consumerPart, createMonitoring, handlerPart } from './monitoring-parts.ts';
import { Network } from './network.ts';
import type { Common } from './own-function.ts';
import { configure, connectToDatabase, type ProduceOptions, type Producer, takesGrants } from './producer.ts';
import { Relay } from './relay.ts';
import type { RelayboxProps } from './relaybox-props.ts';
import { sayOtherNames } from './service-name.ts';

/**
 * Relaybox on a database: the tables' migration at each deployment, the relay, an ingest for each inbox, maintenance,
 * their queues, schedules, permissions, alarms and a dashboard. What teams get wrong is checked at synth.
 *
 * @example
 * const relaybox = new Relaybox(this, 'Relaybox', {
 *   source: 'orders-service',
 *   database: Database.fromCluster(cluster, { databaseName: 'app' }),
 *   destinations: { orders: Destination.queue(orders), events: Destination.eventBus(bus) },
 *   inboxes: [{ source: 'orders-service', queue: orders }], // one's own messages; of another service its name and queue
 *   alarmTopic,
 * });
 * relaybox.addHandler('OrderPlaced', { messageType: 'order.placed', entry: 'functions/order-placed.mts' });
 * relaybox.addConsumer('Emails', { consumer: 'emails', queue: emails, entry: 'functions/emails.mts' });
 * relaybox.grantProduce(placeOrderFunction);
 */
export class Relaybox extends Construct {
  readonly network: Network;
  readonly relay: Relay;
  readonly maintain: Maintain;
  readonly migration: Migration;
  /** Undefined where the props leave it out. */
  readonly monitoring: Monitoring | undefined;
  /** `service` of logs and metrics. */
  readonly serviceName: string;
  readonly #props: RelayboxProps;
  readonly #common: Common;
  readonly #ingests: Ingest[] = [];
  readonly #handlers: Handler[] = [];
  readonly #consumers: Consumer[] = [];
  readonly #producers: Producer[] = [];

  constructor(scope: Construct, id: string, props: RelayboxProps) {
    super(scope, id);
    this.#props = props;
    this.serviceName =
      props.serviceName ?? Names.uniqueResourceName(this, { maxLength: 100, separator: '-' });
    this.network = this.createNetwork(props);
    this.#common = commonOf(this, props, this);
    this.migration = this.createMigration(props);
    this.relay = this.createRelay(props);
    this.maintain = this.createMaintain(props);
    for (const own of [this.relay.function, this.maintain.function]) this.#connect(own);
    this.#letOperatorsWake();
    for (const inbox of props.inboxes ?? []) this.#addInbox(inbox);
    this.monitoring = props.monitoring?.enabled === false ? undefined : createMonitoring(this, props);
    if (this.monitoring !== undefined && props.alarmTopic === undefined) sayThatNobodyIsTold(this);
    this.node.addValidation({ validate: () => validateDeployment(this, props) });
  }

  /** One for each of `inboxes`, in their order. */
  get ingests(): readonly Ingest[] {
    return this.#ingests;
  }

  /** In the order in which they were added. */
  get handlers(): readonly Handler[] {
    return this.#handlers;
  }

  /** In the order in which they were added. */
  get consumers(): readonly Consumer[] {
    return this.#consumers;
  }

  /** Functions with `grantProduce`. */
  get producers(): readonly Producer[] {
    return this.#producers;
  }

  /** The variables that `grantProduce` sets, for a function that is defined elsewhere. */
  get environmentOfProducers(): Record<string, string> {
    return {
      RELAYBOX_DATABASE: databaseSettings(this, this.#props, 'functions'),
      RELAYBOX_WAKE_QUEUE_URL: this.relay.wakeQueue.url,
      RELAYBOX_DESTINATION_LIMITS: ofDestinations(this, this.#props, (each) => each.limits()),
      POWERTOOLS_SERVICE_NAME: this.serviceName,
      ...tableSettings(this.#props),
    };
  }

  /** Adds the function that handles one message type. */
  addHandler(id: string, props: HandlerProps): Handler {
    const handler = this.createHandler(id, props);
    this.#employ(handler.function, {
      RELAYBOX_INBOX_WAKE_QUEUE_URLS: this.#wakeQueueUrls(handler.consumer),
      ...(handler.consumer && { RELAYBOX_CONSUMER: handler.consumer }),
    });
    if (props.function) connectToDatabase(props.function, this.network);
    this.#handlers.push(handler);
    this.#wakeEachOther(handler);
    this.monitoring?.addHandler(handlerPart(handler));
    return handler;
  }

  /** Adds a function that handles messages straight from a queue, by `sqsConsumer`. */
  addConsumer(id: string, props: ConsumerProps): Consumer {
    const consumer = this.createConsumer(id, props);
    this.#employ(consumer.function, {
      ...(props.source !== undefined && { RELAYBOX_INBOX_SOURCE: props.source }),
      ...(consumer.consumer && { RELAYBOX_CONSUMER: consumer.consumer }),
    });
    if (props.function) connectToDatabase(props.function, this.network);
    this.#consumers.push(consumer);
    this.monitoring?.addConsumer(consumerPart(consumer));
    return consumer;
  }

  /** Lets a function add messages: the database, the wake queue, and the destinations' limits, by which `add` refuses early. */
  grantProduce(fn: lambda.IFunction, options: ProduceOptions = {}): void {
    configure(fn, this.environmentOfProducers);
    const { wakeQueue } = this.relay;
    const needed = [
      `sqs:SendMessage on ${wakeQueue.queue.queueArn}`,
      this.#props.database.permissionToConnect,
    ];
    if (takesGrants(fn, needed)) {
      this.#connect(fn);
      wakeQueue.grantWake(fn);
    }
    connectToDatabase(fn, this.network);
    this.#producers.push({ ...options, function: fn });
  }

  protected createNetwork(props: RelayboxProps): Network {
    return new Network(this, 'Network', {
      database: props.database,
      ...(props.vpc && { vpc: props.vpc }),
      ...(props.vpcSubnets && { vpcSubnets: props.vpcSubnets }),
      ...(props.securityGroups && { securityGroups: props.securityGroups }),
    });
  }

  protected createMigration(props: RelayboxProps): Migration {
    const migration = new Migration(this, 'Migration', {
      ...props.migration,
      common: this.#common,
      engine: props.database.engine,
      database: props.database,
      databaseSettings: databaseSettings(this, props, 'migration'),
    });
    props.database.grantConnect(migration.function, 'migration');
    return migration;
  }

  protected createRelay(props: RelayboxProps): Relay {
    return new Relay(this, 'Relay', {
      ...props.relay,
      common: this.#common,
      engine: props.database.engine,
      destinations: props.destinations ?? {},
      destinationSettings: ofDestinations(this, props, (each) => each.settings()),
    });
  }

  protected createMaintain(props: RelayboxProps): Maintain {
    return new Maintain(this, 'Maintain', {
      ...props.maintenance,
      common: this.#common,
      engine: props.database.engine,
    });
  }

  protected createIngest(id: string, inbox: InboxProps): Ingest {
    return new Ingest(this, id, {
      common: this.#common,
      engine: this.#props.database.engine,
      inbox,
      inboxWakeQueueUrls: this.#wakeQueueUrls(inbox.consumer ?? ''),
    });
  }

  protected createHandler(id: string, props: HandlerProps): Handler {
    return new Handler(this, id, { ...props, common: this.#common });
  }

  protected createConsumer(id: string, props: ConsumerProps): Consumer {
    return new Consumer(this, id, { ...props, common: this.#common });
  }

  #addInbox(inbox: InboxProps): void {
    const name = [inbox.source, ...(inbox.consumer ? [inbox.consumer] : [])].join('-');
    const ingest = this.createIngest(`Ingest-${name}`, inbox);
    this.#connect(ingest.function);
    if (inbox.ingest?.function) connectToDatabase(inbox.ingest.function, this.network);
    sayOtherNames(ingest.function, this.serviceName);
    this.#ingests.push(ingest);
  }

  /** What a function has that handles messages, and adds some. */
  #employ(fn: lambda.Function, environment: Record<string, string>): void {
    configure(fn, { ...this.#common.environment, ...this.environmentOfProducers, ...environment });
    sayOtherNames(fn, this.serviceName);
    this.#connect(fn);
    this.relay.wakeQueue.grantWake(fn);
  }

  /** What every function that uses the tables needs: its login, and the tables before it. */
  #connect(fn: lambda.IFunction): void {
    this.#props.database.grantConnect(fn);
    this.migration.before(fn);
  }

  /** What an operator requeues, discards or resumes through maintenance goes on at once, not at the next sweep. */
  #letOperatorsWake(): void {
    configure(this.maintain.function, {
      RELAYBOX_WAKE_QUEUE_URL: this.relay.wakeQueue.url,
      RELAYBOX_INBOX_WAKE_QUEUE_URLS: this.#wakeQueueUrls(),
    });
    this.relay.wakeQueue.grantWake(this.maintain.function);
  }

  /** Ingest wakes the handler of what it stores; a handler wakes that of the next message of its key. */
  #wakeEachOther(added: Handler): void {
    const { consumer } = added;
    added.wakeQueue.grantWake(this.maintain.function);
    for (const ingest of this.#ingests) {
      if (ingest.consumer === consumer) added.wakeQueue.grantWake(ingest.function);
    }
    for (const other of this.#handlers) {
      if (other.consumer !== consumer) continue;
      added.wakeQueue.grantWake(other.function);
      if (other !== added) other.wakeQueue.grantWake(added.function);
    }
  }

  /** Rendered at the end, when all handlers are known: those of one consumer, or all. */
  #wakeQueueUrls(consumer?: string): string {
    return Lazy.string({
      produce: () => {
        const handlers = this.#handlers.filter(
          (handler) => consumer === undefined || handler.consumer === consumer,
        );
        // Two consumers may have a handler each for one type. By its lane, whoever wakes all of them has both.
        const nameOf = ({ messageType, consumer: of }: Handler): string =>
          consumer === undefined ? laneLabel({ box: 'inbox', messageType, consumer: of }) : messageType;
        return Stack.of(this).toJsonString(
          Object.fromEntries(handlers.map((handler) => [nameOf(handler), handler.wakeQueue.url])),
        );
      },
    });
  }
}
