import { Token } from 'aws-cdk-lib';
import * as events from 'aws-cdk-lib/aws-events';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import type {
  DeploymentFacts,
  DestinationFacts,
  EventSourceFacts,
  FunctionFacts,
  ScheduleFacts,
} from '../checks/facts.ts';
import { type Destination, EventBusDestination, QueueDestination } from './destination.ts';
import { ownEventSources } from './event-source-facts.ts';
import { allowsEvents, keyOf } from './key-facts.ts';
import { networkFacts } from './network-facts.ts';
import { queueFacts } from './queue-facts.ts';
import type { Relaybox } from './relaybox.ts';
import type { RelayboxProps } from './relaybox-props.ts';
import type { Sweep } from './sweep.ts';

/** The sizes of the functions' own pools of connections, as `shared/lambda` makes them. */
const POOLS = { relay: 2, ingest: 2, maintain: 3, migrate: 1 } as const;

/** What is known of a deployment, as plain values. */
export function deploymentFacts(relaybox: Relaybox, props: RelayboxProps): DeploymentFacts {
  const { database } = props;
  const inboxRetentionDays = relaybox.maintain.inboxRetentionDays;
  return {
    engine: database.engine.name,
    functions: functionsOf(relaybox),
    eventSources: eventSourcesOf(relaybox),
    schedules: schedulesOf(relaybox),
    inboxes: relaybox.ingests.map(({ source, consumer, facts }) => ({
      source,
      consumer,
      queue: facts,
      retentionDays: inboxRetentionDays,
    })),
    handlers: relaybox.handlers.map((handler) => ({
      function: handler.function.node.path,
      consumer: handler.consumer,
      messageType: handler.messageType,
    })),
    consumers: relaybox.consumers.map(({ function: { node }, consumer }) => ({
      function: node.path,
      consumer,
    })),
    receiptRetentionDays: relaybox.maintain.receiptRetentionDays,
    destinations: Object.entries(props.destinations ?? {}).map(([name, destination]) =>
      destinationOf(name, destination),
    ),
    database: {
      id: database.id,
      maxConnections: database.maxConnections,
      otherConnections: database.otherConnections,
      pausesAfterSeconds: database.pausesAfterSeconds,
      credentials: database.credentials,
    },
    network: networkFacts(relaybox.network, props.egress, functionsOfUsers(relaybox)),
  };
}

/** Those that may stand in subnets of their own. */
function functionsOfUsers(relaybox: Relaybox): lambda.IFunction[] {
  const { ingests, handlers, consumers, producers } = relaybox;
  return [...ingests, ...handlers, ...consumers, ...producers].map((each) => each.function);
}

function functionsOf(relaybox: Relaybox): FunctionFacts[] {
  const { relay, maintain, migration } = relaybox;
  const none = { lease: { kind: 'none' }, maxConcurrency: undefined } as const;
  return [
    {
      ...functionOf(relay.function),
      role: 'relay',
      connections: POOLS.relay,
      maxConcurrency: undefined,
      lease: { kind: 'extended', seconds: relay.leaseSeconds },
    },
    ...relaybox.ingests.map((ingest) => ({
      ...none,
      ...functionOf(ingest.function),
      role: 'ingest' as const,
      connections: POOLS.ingest,
    })),
    ...relaybox.handlers.map((handler) => ({
      ...functionOf(handler.function),
      role: 'handler' as const,
      connections: handler.connections,
      maxConcurrency: undefined,
      lease: { kind: 'invocation' as const, ...handler.lease },
    })),
    ...relaybox.consumers.map((consumer) => ({
      ...none,
      ...functionOf(consumer.function),
      role: 'consumer' as const,
      connections: consumer.connections,
    })),
    ...relaybox.producers.map((producer) => ({
      ...functionOf(producer.function),
      role: 'producer' as const,
      connections: producer.connections,
      maxConcurrency: producer.maxConcurrency,
      lease: none.lease,
    })),
    { ...none, ...functionOf(maintain.function), role: 'maintain', connections: POOLS.maintain },
    { ...none, ...functionOf(migration.function), role: 'migrate', connections: POOLS.migrate },
  ];
}

function functionOf(
  fn: lambda.IFunction,
): Pick<
  FunctionFacts,
  'id' | 'timeoutSeconds' | 'reservedConcurrency' | 'asyncRetryAttempts' | 'asyncMaxEventAgeSeconds'
> {
  const child = fn.node.defaultChild;
  const own = child instanceof lambda.CfnFunction ? child : undefined;
  return {
    id: fn.node.path,
    // Lambda's own default.
    timeoutSeconds: own && (numberOf(own.timeout) ?? (own.timeout === undefined ? 3 : undefined)),
    reservedConcurrency:
      own &&
      (own.reservedConcurrentExecutions === undefined ? 'none' : numberOf(own.reservedConcurrentExecutions)),
    ...(own ? asyncOf(fn) : { asyncRetryAttempts: undefined, asyncMaxEventAgeSeconds: undefined }),
  };
}

function asyncOf(
  fn: lambda.IFunction,
): Pick<FunctionFacts, 'asyncRetryAttempts' | 'asyncMaxEventAgeSeconds'> {
  const config = fn.node.findAll().find((child) => child instanceof lambda.CfnEventInvokeConfig);
  const { maximumRetryAttempts: attempts, maximumEventAgeInSeconds: age } = config ?? {};
  // What is left out is Lambda's own default.
  return {
    asyncRetryAttempts: attempts === undefined ? 2 : numberOf(attempts),
    asyncMaxEventAgeSeconds: age === undefined ? 6 * 3600 : numberOf(age),
  };
}

function eventSourcesOf(relaybox: Relaybox): EventSourceFacts[] {
  const { relay } = relaybox;
  const wakes = [relay, ...relaybox.handlers].map((worker) => ({
    function: worker.function.node.path,
    queue: queueFacts(worker.wakeQueue.queue),
    batchingWindowSeconds: 0,
    maxConcurrency: worker.maxConcurrency,
    wake: true,
    reportsFailures: false,
  }));
  const taken = [...relaybox.ingests, ...relaybox.consumers].map((taker) => ({
    function: taker.function.node.path,
    queue: taker.facts,
    batchingWindowSeconds: taker.batchingWindow.toSeconds(),
    maxConcurrency: taker.maxConcurrency,
    wake: false,
    reportsFailures: true,
  }));
  const own = relaybox.producers.flatMap((producer) => ownEventSources(producer.function));
  // A queue that somebody has put before a worker: it takes wakes and nothing else.
  const mistaken = [relay, ...relaybox.handlers].flatMap(({ function: fn, wakeQueue }) =>
    ownEventSources(fn).filter(({ queue }) => queue.id !== wakeQueue.queue.node.path),
  );
  return [...wakes, ...taken, ...own, ...mistaken];
}

function schedulesOf(relaybox: Relaybox): ScheduleFacts[] {
  const { relay, maintain, ingests, handlers } = relaybox;
  return [relay, maintain, ...ingests, ...handlers].map(({ function: fn, sweep }) => scheduleOf(fn, sweep));
}

function scheduleOf(fn: lambda.IFunction, sweep: Sweep): ScheduleFacts {
  return {
    id: sweep.node.path,
    function: fn.node.path,
    intervalSeconds: sweep.interval.toSeconds(),
    retryAttempts: sweep.retryAttempts,
    maxEventAgeSeconds: sweep.maxEventAge.toSeconds(),
  };
}

function destinationOf(name: string, destination: Destination): DestinationFacts {
  const { keyed } = destination;
  if (destination instanceof QueueDestination) {
    const { facts: queue } = destination;
    const transport = queue.fifo === undefined ? undefined : queue.fifo ? 'sqs-fifo' : 'sqs';
    return { name, keyed, transport, queue };
  }
  if (!(destination instanceof EventBusDestination)) return { name, keyed, transport: undefined };
  return { name, keyed, transport: 'eventbridge', busEncryption: busEncryptionOf(destination) };
}

function busEncryptionOf({
  eventBus,
  keyAllowsEvents,
}: EventBusDestination): DestinationFacts['busEncryption'] {
  const child = eventBus.node.defaultChild;
  const own = child instanceof events.CfnEventBus ? child : undefined;
  const keyId = own?.kmsKeyIdentifier;
  if (keyId !== undefined) {
    const key = keyOf(eventBus, keyId);
    return {
      keyId: key?.node.path ?? (Token.isUnresolved(keyId) ? 'its own KMS key' : keyId),
      allowsEvents: keyAllowsEvents ?? allowsEvents(key),
    };
  }
  if (own !== undefined) return 'aws';
  return keyAllowsEvents === undefined ? undefined : { keyId: 'its KMS key', allowsEvents: keyAllowsEvents };
}

function numberOf(value: number | undefined): number | undefined {
  return value === undefined || Token.isUnresolved(value) ? undefined : value;
}
