import type { FunctionFacts } from './facts.ts';

/** The props that supply what a deployment doesn't reveal by itself, as one writes them. One place, since messages cite them. */
export const props = {
  /** Of the queue that such a function takes its messages from. */
  queueFacts: (role: FunctionFacts['role'] | undefined, names: string) => {
    if (role === 'ingest') return `inboxes: [{ …, queueFacts: { ${names} } }]`;
    if (role === 'consumer') return `relaybox.addConsumer(…, { queueFacts: { ${names} } })`;
    if (role === 'producer') return `relaybox.addConsumer(…, { function, queue, queueFacts: { ${names} } })`;
    return 'a wake queue that this app defines';
  },
  destinationQueueFacts: (names: string) => `Destination.queue(queue, { queueFacts: { ${names} } })`,
  keyed: (transport: 'sqs' | 'eventbridge') =>
    transport === 'eventbridge'
      ? 'Destination.eventBus(bus, { keyed: true | false })'
      : 'Destination.queue(queue, { keyed: true | false })',
  busKey: 'Destination.eventBus(bus, { keyAllowsEvents: true | false })',
  maxConnections: 'Database.from…(…, { maxConnections })',
  produceConcurrency: 'relaybox.grantProduce(fn, { maxConcurrency, connections })',
  egress: "egress: 'provided'",
} as const;
