import { defaults } from './defaults.ts';

/** How waits grow. All values in seconds. */
export interface Backoff {
  readonly firstSeconds: number;
  readonly factor: number;
  readonly maxSeconds: number;
}

/** Between a message's attempts: 5 s, doubled up to 5 min. */
export const retryBackoff: Backoff = {
  firstSeconds: defaults.firstRetrySeconds,
  factor: defaults.retryFactor,
  maxSeconds: defaults.maxRetrySeconds,
};

/** Between a breaker's probes: 1 s, doubled up to 1 min. */
export const breakerBackoff: Backoff = {
  firstSeconds: defaults.breakerFirstSeconds,
  factor: 2,
  maxSeconds: defaults.breakerMaxSeconds,
};

/**
 * Seconds to wait after the given failure, the first being 1. Jitter takes up to a fifth off, so that rows
 * which failed together do not come back together, and nobody waits longer than the cap.
 */
export function backoffSeconds(
  failure: number,
  backoff: Backoff = retryBackoff,
  random: () => number = Math.random,
): number {
  // A large exponent overflows to Infinity, which the cap turns into the cap.
  const full = Math.min(
    backoff.maxSeconds,
    backoff.firstSeconds * backoff.factor ** Math.max(0, failure - 1),
  );
  return full * (1 - 0.2 * random());
}
