/** `relaybox`: what a message is, its errors and the defaults; nothing here needs a database or an SDK. */
export { type Backoff, backoffSeconds, breakerBackoff, retryBackoff } from './delivery/backoff.ts';
export { defaults } from './delivery/defaults.ts';
export type { Failure, FailureKind } from './delivery/failure.ts';
export { type Logger, type MetricName, silent, type Telemetry } from './delivery/telemetry.ts';
export {
  ConfigurationError,
  DatabaseUnavailable,
  LeaseLost,
  MessageRefused,
  Rejected,
  RelayboxError,
  RetryAfter,
  SchemaError,
  TransactionError,
} from './message/errors.ts';
export { messageId, newId } from './message/id.ts';
export type { DestinationLimits, DestinationTable } from './message/limits.ts';
export {
  type AddResult,
  type Headers,
  type Message,
  type NewMessage,
  type OutgoingMessage,
  State,
} from './message/message.ts';
export type {
  Destinations,
  Prepared,
  Publisher,
  SendOutcome,
  TransportLimits,
} from './publish/publisher.ts';
export type { SqlExecutor } from './store/executor.ts';
export type { InboxStore } from './store/inbox-store.ts';
export type { OutboxStore } from './store/outbox-store.ts';
