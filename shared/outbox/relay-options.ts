import { type Backoff, breakerBackoff, retryBackoff } from '../delivery/backoff.ts';
import type { Deadline } from '../delivery/deadline.ts';
import { defaults } from '../delivery/defaults.ts';
import type { Telemetry } from '../delivery/telemetry.ts';
import type { Destinations } from '../publish/publisher.ts';
import type { AfterSuccess, OnFailedKey, OutboxStore } from '../store/outbox-store.ts';

/** Settings of a relay; all have the defaults of `defaults.ts`. */
export interface RelayOptions {
  /** Messages per read. @default 50 */
  readonly batchSize: number;
  /** Payload bytes per read, so that large messages don't exhaust a small function. @default 8 MiB */
  readonly maxBytes: number;
  /** Lanes at once, and calls at once per lane. @default 4 */
  readonly parallelism: number;
  /** A bucket's lease; each settle extends it. @default 30,000 */
  readonly leaseMs: number;
  /** Buckets of a lane leased at once. @default 16 */
  readonly buckets: number;
  /** What becomes of a published row. @default 'keep' */
  readonly afterSuccess: AfterSuccess;
  /** What happens behind a message that is Failed for good, by destination. @default 'block' */
  readonly onFailedKey: (destination: string) => OnFailedKey;
  /** Between a message's attempts; on an ordered transport (SQS FIFO) never more than 200 s. @default 5 s, doubled up to 5 min */
  readonly retry: Backoff;
  readonly breaker: Backoff;
  /** `scheduled` ends when nothing is due; `continuous` polls until the deadline. @default 'scheduled' */
  readonly mode: 'scheduled' | 'continuous';
  /** Between two looks in `continuous` mode. @default 2,000 */
  readonly pollMs: number;
  /** The longest that one call to a broker may take. @default 10,000 */
  readonly sendTimeoutMs: number;
  /** A lane yields its place to others after so long. @default 2,000 */
  readonly sliceMs: number;
  readonly maxHops: number;
}

/** A relay's settings where nothing else is said. */
export const relayDefaults: RelayOptions = {
  batchSize: defaults.batchSize,
  maxBytes: defaults.claimBytes,
  parallelism: defaults.parallelism,
  leaseMs: defaults.bucketLeaseSeconds * 1000,
  buckets: defaults.bucketsPerRelay,
  afterSuccess: 'keep',
  onFailedKey: () => 'block',
  retry: retryBackoff,
  breaker: breakerBackoff,
  mode: 'scheduled',
  pollMs: defaults.pollSeconds * 1000,
  sendTimeoutMs: 10_000,
  sliceMs: 2_000,
  maxHops: defaults.maxHops,
};

/** What a relay works with. */
export interface RelayContext {
  readonly store: OutboxStore;
  readonly destinations: Destinations;
  /** The invocation's end, less what its epilogue needs. */
  readonly deadline: Deadline;
  /** Aborted on shutdown: what was not sent is given back. */
  readonly signal: AbortSignal;
  readonly telemetry: Telemetry;
  readonly options: RelayOptions;
}
