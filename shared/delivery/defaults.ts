/** One definition of the defaults, read by the library, the functions, the infrastructure and the documents. */
export const defaults = {
  batchSize: 50,
  parallelism: 4,
  pollSeconds: 2,
  firstRetrySeconds: 5,
  retryFactor: 2,
  maxRetrySeconds: 300,
  /**
   * The longest wait before a message's next attempt on an ordered transport. SQS FIFO drops a second copy within five
   * minutes of the first; sweeps and sends have to fit in too.
   */
  orderedMaxRetrySeconds: 200,
  /** A message's lease; a function's timeout plus `leaseMarginSeconds` where that is longer. */
  messageLeaseSeconds: 120,
  leaseMarginSeconds: 10,
  /** A relay's lease on a bucket; each settle extends it. */
  bucketLeaseSeconds: 30,
  drainSeconds: 30,
  inboxMaxRetries: 5,
  /** How "without limit" is stored. */
  unlimitedRetries: 2_147_483_647,
  healthStaleSeconds: 120,
  outboxRetentionDays: 7,
  inboxRetentionDays: 30,
  /** Buckets of a lane: the hash of the partition key, or of the id, masked to six bits. */
  buckets: 64,
  /** Buckets that one relay leases of a lane at a time, so that others find some too. */
  bucketsPerRelay: 16,
  /** Payload bytes that one claim may bring into memory. */
  claimBytes: 8 * 1024 * 1024,
  /** A breaker's first pause, doubled at each failed probe. */
  breakerFirstSeconds: 1,
  breakerMaxSeconds: 60,
  /** A message that was caused by a message, so many times over, is a loop. */
  maxHops: 64,
  /** Wakes in a row without progress before the chain is left to the sweep. */
  maxWakeHops: 8,
  wakeTimeoutMs: 200,
  wakeWindowMs: 200,
} as const;
