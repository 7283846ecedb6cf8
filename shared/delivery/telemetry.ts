/** Where Relaybox writes what happened. Powertools' logger fits it, and so does `console`. */
export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** Names of the metrics; the dimension is the lane (destination or message type), never an id or a key. */
export type MetricName =
  | 'Added'
  | 'Claimed'
  | 'Published'
  | 'Handled'
  | 'Retried'
  | 'Failed'
  | 'Released'
  | 'LostLeases'
  | 'Ingested'
  | 'Duplicates'
  | 'DuplicatesThatDiffer'
  | 'Unreadable'
  | 'LaneOpened'
  | 'HopLimit'
  | 'WakeHopLimit'
  | 'OldestDueAgeSeconds'
  | 'Backlog'
  | 'FailedMessages'
  | 'BlockedKeys'
  | 'ExpiredLeases'
  | 'PausedLanes'
  | 'OpenLanes'
  | 'UnhandledTypes'
  | 'HandlerMs'
  | 'Removed';

/** Counts of one invocation; flushed as one blob at its end. Adding to a metric twice adds up. */
export interface Telemetry {
  readonly logger: Logger;
  count(metric: MetricName, value: number, lane?: string): void;
}

const nothing = (): void => undefined;

/** Says nothing and counts nothing: for tests and for callers that bring no telemetry. */
export const silent: Telemetry = {
  logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  count: nothing,
};
