/** `relaybox/cdk`: the infrastructure as constructs. */

export type { AcceptedFinding, CheckName } from './checks/index.ts';
export { Consumer, type ConsumerProps } from './constructs/consumer.ts';
export { Database, type DatabaseOptions, type SecretDatabaseOptions } from './constructs/database.ts';
export {
  Destination,
  type DestinationOptions,
  type EventBusDestinationOptions,
  type QueueDestinationOptions,
} from './constructs/destination.ts';
export { Engine } from './constructs/engine.ts';
export { Handler, type HandlerProps } from './constructs/handler.ts';
export type { HandlerBundling } from './constructs/handler-code.ts';
export { type InboxProps, Ingest } from './constructs/ingest.ts';
export { Maintain, type MaintainOptions } from './constructs/maintain.ts';
export { Migration, type MigrationOptions } from './constructs/migration.ts';
export { Network } from './constructs/network.ts';
export type { ProduceOptions, Producer } from './constructs/producer.ts';
export type { KnownDeadLetterQueueFacts, KnownQueueFacts } from './constructs/queue-facts.ts';
export { Relay, type RelayOptions } from './constructs/relay.ts';
export { Relaybox } from './constructs/relaybox.ts';
export type { MonitoringOptions, RelayboxProps, TableNames } from './constructs/relaybox-props.ts';
export { Sweep } from './constructs/sweep.ts';
export type { UserCode } from './constructs/user-function.ts';
export { WakeQueue } from './constructs/wake-queue.ts';
export { Monitoring } from './monitoring/monitoring.ts';
export type { ConsumerPart, DeadLetterQueuePart, FunctionPart } from './monitoring/parts.ts';
