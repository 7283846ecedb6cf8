import { AsyncLocalStorage } from 'node:async_hooks';
import type { Headers } from '../message/message.ts';

/** What a message that is added while another is handled inherits from that one. */
export interface MessageContext {
  /** How many messages led to the one being handled; its own messages get one more. */
  readonly hops: number;
  /** W3C trace context. */
  readonly traceparent?: string;
}

const storage = new AsyncLocalStorage<MessageContext>();

/** Runs a handler so that `outbox.add` within it knows which message caused the new ones. */
export function withMessageContext<Result>(context: MessageContext, work: () => Result): Result {
  return storage.run(context, work);
}

/** Headers that the running context adds to a new message. */
export function contextHeaders(): Headers {
  const context = storage.getStore();
  if (context === undefined) return {};
  return {
    'relaybox-hops': String(context.hops + 1),
    ...(context.traceparent === undefined ? {} : { traceparent: context.traceparent }),
  };
}
