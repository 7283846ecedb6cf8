import type { Destinations, Publisher } from './publisher.ts';

/** Where a logical destination name leads, as the configuration says. */
export type DestinationTarget =
  | { readonly type: 'sqs'; readonly url: string; readonly fifo: boolean }
  | { readonly type: 'eventbridge'; readonly bus: string };

/** What all destinations share. */
export interface DestinationsOptions {
  /** Who we are on the wire. EventBridge demands it. */
  readonly source: string | undefined;
  /** Endpoints other than AWS's own. */
  readonly endpoints?: { readonly sqs?: string | undefined; readonly eventBridge?: string | undefined };
}

/** Makes the publishers of the destinations. A transport's client is loaded only where a destination uses it. */
export async function makeDestinations(
  targets: Readonly<Record<string, DestinationTarget>>,
  options: DestinationsOptions,
): Promise<Destinations> {
  const transports = new Set(Object.values(targets).map((target) => target.type));
  const sqs = transports.has('sqs') ? await sqsPublishers(options) : undefined;
  const eventBridge = transports.has('eventbridge') ? await eventBridgePublishers(options) : undefined;
  const destinations = new Map<string, Publisher<unknown>>();
  for (const [name, target] of Object.entries(targets)) {
    const publisher = target.type === 'sqs' ? sqs?.(target) : eventBridge?.(target);
    if (publisher) destinations.set(name, publisher);
  }
  return destinations;
}

async function sqsPublishers(options: DestinationsOptions) {
  const { SqsPublisher, sqsClient } = await import('./sqs.ts');
  const client = sqsClient({ endpoint: options.endpoints?.sqs });
  return (target: DestinationTarget & { type: 'sqs' }): Publisher<unknown> =>
    new SqsPublisher({ client, source: options.source, url: target.url, fifo: target.fifo });
}

async function eventBridgePublishers(options: DestinationsOptions) {
  const { EventBridgePublisher, eventBridgeClient } = await import('./eventbridge.ts');
  const client = eventBridgeClient({ endpoint: options.endpoints?.eventBridge });
  return (target: DestinationTarget & { type: 'eventbridge' }): Publisher<unknown> =>
    new EventBridgePublisher({ client, source: options.source, bus: target.bus });
}
