import type { Headers, OutgoingMessage } from '../message.ts';

/** What begins so belongs to Relaybox: `add` refuses such headers from applications. */
export const reservedPrefix = 'relaybox-';

/** What Relaybox's facts about a message are called on the wire, and in a row's headers. */
export const names = {
  id: 'relaybox-id',
  type: 'relaybox-type',
  source: 'relaybox-source',
  correlationId: 'relaybox-correlation-id',
  partitionKey: 'relaybox-partition-key',
  traceparent: 'traceparent',
  hops: 'relaybox-hops',
  /** JSON of all other headers, since SQS takes ten attributes at most. */
  headers: 'relaybox-headers',
} as const;

/** Type of rows whose record was not understood: their own lane, until a person has looked. No sender may use it. */
export const UNREADABLE_TYPE = 'relaybox.unreadable';

/** How often the message was caused by a message, as its headers say; 0 where they don't. */
export function hopsOf(headers: Headers): number {
  const hops = Number(headers[names.hops] ?? 0);
  return Number.isSafeInteger(hops) && hops > 0 ? hops : 0;
}

/** The headers that an application set and may see: all but Relaybox's own. */
export function applicationHeaders(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(reservedPrefix)));
}

/** The facts of a message, apart from its payload and from the application's other headers. */
export interface Facts {
  readonly id: string;
  readonly type: string;
  readonly source: string | undefined;
  readonly correlationId: string | undefined;
  readonly partitionKey: string | undefined;
  readonly traceparent: string | undefined;
  readonly hops: string | undefined;
}

/** Splits a message into what every envelope names by itself and the headers that travel together. */
export function factsOf(
  message: OutgoingMessage,
  source: string | undefined,
): { readonly facts: Facts; readonly headers: Headers } {
  const { [names.traceparent]: traceparent, ...headers } = applicationHeaders(message.headers);
  const facts: Facts = {
    id: message.id,
    type: message.messageType,
    source: source || undefined,
    correlationId: message.correlationId ?? undefined,
    partitionKey: message.partitionKey ?? undefined,
    traceparent,
    hops: message.headers[names.hops],
  };
  return { facts, headers };
}
