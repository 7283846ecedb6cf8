import { Lazy, Names, Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { laneLabel } from '../../shared/operations/maintain.ts';
import type { Monitoring } from '../monitoring/monitoring.ts';
import { validateDeployment } from './check-deployment.ts';
import { Handler, type HandlerProps } from './handler.ts';
import { type InboxProps, Ingest } from './ingest.ts';
import { Maintain } from './maintain.ts';
import { Migration } from './migration.ts';
import { createMonitoring, handlerPart } from './monitoring-parts.ts';
import { Network } from './network.ts';
import type { Common } from './own-function.ts';
import { configure, connectToDatabase, type ProduceOptions, type Producer, takesGrants } from './producer.ts';
import { Relay } from './relay.ts';
import type { RelayboxProps } from './relaybox-props.ts';

/**
 * Relaybox on a database: the tables' migration at each deployment, the relay, an ingest for each inbox, maintenance,
 * their queues, schedules, permissions, alarms and a dashboard. What teams get wrong is checked at synth.
 *
 * @example
 * const relaybox = new Relaybox(this, 'Relaybox', {
 *   source: 'orders-service',
 *   database: Database.fromCluster(cluster, { databaseName: 'app' }),
 *   destinations: { orders: Destination.queue(orders), events: Destination.eventBus(bus) },
 *   inboxes: [{ source: 'payments-service', queue: incoming }],
 *   alarmTopic,
 * });
 * relaybox.addHandler('OrderPlaced', { messageType: 'order.placed', entry: 'functions/order-placed.ts' });
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
  readonly #producers: Producer[] = [];

  constructor(scope: Construct, id: string, props: RelayboxProps) {
    super(scope, id);
    this.#props = props;
    this.serviceName =
      props.serviceName ?? Names.uniqueResourceName(this, { maxLength: 100, separator: '-' });
    this.network = this.createNetwork(props);
    this.#common = this.#commonOf(props);
    this.migration = this.createMigration(props);
    this.relay = this.createRelay(props);
    this.maintain = this.createMaintain(props);
    for (const own of [this.relay.function, this.maintain.function]) this.#connect(own);
    this.#letOperatorsWake();
    for (const inbox of props.inboxes ?? []) this.#addInbox(inbox);
    this.monitoring = props.monitoring?.enabled === false ? undefined : createMonitoring(this, props);
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

  /** Functions with `grantProduce`. */
  get producers(): readonly Producer[] {
    return this.#producers;
  }

  /** The variables that `grantProduce` sets, for a function that is defined elsewhere. */
  get environmentOfProducers(): Record<string, string> {
    return {
      RELAYBOX_DATABASE: this.#databaseSettings('functions'),
      RELAYBOX_WAKE_QUEUE_URL: this.relay.wakeQueue.url,
      RELAYBOX_DESTINATION_LIMITS: this.#destinations((destination) => destination.limits()),
      ...tableSettings(this.#props),
    };
  }

  /** Adds the function that handles one message type. */
  addHandler(id: string, props: HandlerProps): Handler {
    const handler = this.createHandler(id, props);
    configure(handler.function, {
      ...this.#common.environment,
      ...this.environmentOfProducers,
      RELAYBOX_SOURCE: this.#props.source,
      RELAYBOX_INBOX_WAKE_QUEUE_URLS: this.#wakeQueueUrls(handler.consumer),
      ...(handler.consumer && { RELAYBOX_CONSUMER: handler.consumer }),
    });
    this.#connect(handler.function);
    if (props.function) connectToDatabase(props.function, this.network);
    this.relay.wakeQueue.grantWake(handler.function);
    this.#handlers.push(handler);
    this.#wakeEachOther(handler);
    this.monitoring?.addHandler(handlerPart(handler));
    return handler;
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
      databaseSettings: this.#databaseSettings('migration'),
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
      destinationSettings: this.#destinations((destination) => destination.settings()),
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

  #addInbox(inbox: InboxProps): void {
    const name = [inbox.source, ...(inbox.consumer ? [inbox.consumer] : [])].join('-');
    const ingest = this.createIngest(`Ingest-${name}`, inbox);
    this.#connect(ingest.function);
    this.#ingests.push(ingest);
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

  #destinations(what: (destination: NonNullable<RelayboxProps['destinations']>[string]) => object): string {
    const entries = Object.entries(this.#props.destinations ?? {});
    return Stack.of(this).toJsonString(
      Object.fromEntries(entries.map(([name, destination]) => [name, what(destination)])),
    );
  }

  #databaseSettings(login: 'functions' | 'migration'): string {
    return Stack.of(this).toJsonString(this.#props.database.settings(login));
  }

  #commonOf(props: RelayboxProps): Common {
    return {
      network: this.network,
      environment: {
        RELAYBOX_DATABASE: this.#databaseSettings('functions'),
        RELAYBOX_SOURCE: props.source,
        POWERTOOLS_SERVICE_NAME: this.serviceName,
        POWERTOOLS_METRICS_NAMESPACE: 'Relaybox',
        ...tableSettings(props),
      },
      logRetention: props.logRetention ?? logs.RetentionDays.ONE_MONTH,
      tracing: props.tracing === false ? lambda.Tracing.DISABLED : lambda.Tracing.ACTIVE,
    };
  }
}

function tableSettings({ tables = {} }: RelayboxProps): Record<string, string> {
  return {
    ...(tables.schema && { RELAYBOX_SCHEMA: tables.schema }),
    ...(tables.outboxTable && { RELAYBOX_OUTBOX_TABLE: tables.outboxTable }),
    ...(tables.inboxTable && { RELAYBOX_INBOX_TABLE: tables.inboxTable }),
  };
}
