import type {
  DeploymentFacts,
  EventSourceFacts,
  FunctionFacts,
  InboxFacts,
  QueueFacts,
  ScheduleFacts,
} from '../../infra/checks/index.ts';

/** A queue as the CDK makes it, with a dead-letter queue that keeps its messages for two weeks. */
export function queue(over: Partial<QueueFacts> = {}): QueueFacts {
  return {
    id: 'App/Incoming',
    fifo: false,
    visibilitySeconds: 360,
    retentionSeconds: 4 * 86_400,
    deadLetterQueue: deadLetterQueue(),
    encryption: 'sqs',
    keyAllowsEvents: undefined,
    fedByEventBridge: undefined,
    ...over,
  };
}

export function deadLetterQueue(
  over: Partial<Exclude<QueueFacts['deadLetterQueue'], 'none' | undefined>> = {},
) {
  return { id: 'App/IncomingDead', fifo: false, retentionSeconds: 14 * 86_400, maxReceiveCount: 5, ...over };
}

export function fn(over: Partial<FunctionFacts> = {}): FunctionFacts {
  return {
    id: 'App/Relaybox/Ingest',
    role: 'ingest',
    timeoutSeconds: 60,
    reservedConcurrency: 'none',
    maxConcurrency: undefined,
    connections: 2,
    lease: { kind: 'none' },
    asyncRetryAttempts: 0,
    asyncMaxEventAgeSeconds: 60,
    ...over,
  };
}

export const relay = fn({
  id: 'App/Relaybox/Relay',
  role: 'relay',
  lease: { kind: 'extended', seconds: 30 },
});

export const handler = fn({
  id: 'App/Relaybox/OrderPlaced',
  role: 'handler',
  timeoutSeconds: 30,
  connections: 5,
  lease: { kind: 'invocation', minimumSeconds: 120, marginSeconds: 10 },
});

export const consumer = fn({
  id: 'App/Relaybox/Emails',
  role: 'consumer',
  timeoutSeconds: 30,
  connections: 5,
});

export function source(over: Partial<EventSourceFacts> = {}): EventSourceFacts {
  return {
    function: 'App/Relaybox/Ingest',
    queue: queue(),
    batchingWindowSeconds: 0,
    maxConcurrency: 2,
    wake: false,
    reportsFailures: true,
    ...over,
  };
}

export const wakeSource = source({
  function: relay.id,
  wake: true,
  queue: queue({
    id: 'App/Relaybox/Wake',
    visibilitySeconds: 360,
    retentionSeconds: 300,
    deadLetterQueue: 'none',
  }),
});

/** A direct consumer's. */
export function consumed(over: Partial<EventSourceFacts> = {}): EventSourceFacts {
  return source({ function: consumer.id, queue: queue({ id: 'App/Emails' }), ...over });
}

export function sweep(over: Partial<ScheduleFacts> = {}): ScheduleFacts {
  return {
    id: 'App/Relaybox/Sweep',
    function: relay.id,
    intervalSeconds: 60,
    retryAttempts: 0,
    maxEventAgeSeconds: 60,
    ...over,
  };
}

export function inbox(over: Partial<InboxFacts> = {}): InboxFacts {
  return { source: 'payments', consumer: '', queue: queue(), retentionDays: 30, ...over };
}

const orders = queue({ id: 'App/Orders', fifo: true, deadLetterQueue: undefined });

/** A deployment that passes every check; a test changes what it is about. */
export function healthy(over: Partial<DeploymentFacts> = {}): DeploymentFacts {
  return {
    engine: 'postgres',
    functions: [relay, fn(), handler, consumer],
    eventSources: [wakeSource, source(), consumed()],
    schedules: [sweep()],
    inboxes: [inbox()],
    handlers: [{ function: handler.id, consumer: '', messageType: 'order.placed' }],
    consumers: [{ function: consumer.id, consumer: 'emails' }],
    receiptRetentionDays: 30,
    destinations: [
      { name: 'orders', transport: 'sqs-fifo', keyed: true, queue: orders },
      { name: 'events', transport: 'eventbridge', keyed: false, busEncryption: 'aws' },
    ],
    database: {
      id: 'App/Database',
      maxConnections: 84,
      otherConnections: 0,
      pausesAfterSeconds: undefined,
      credentials: 'secret',
    },
    network: {
      kind: 'vpc',
      id: 'App/Vpc',
      route: 'none',
      elsewhere: [],
      endpoints: [
        { service: 'sqs', privateDns: true },
        { service: 'events', privateDns: true },
        { service: 'secretsmanager', privateDns: true },
      ],
    },
    ...over,
  };
}
