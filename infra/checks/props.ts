/** The props that supply what a deployment doesn't reveal by itself, as one writes them. One place, since messages cite them. */
export const props = {
  inboxQueueFacts: (names: string) => `inboxes: [{ …, queueFacts: { ${names} } }]`,
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
