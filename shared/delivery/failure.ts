/**
 * The four kinds of failure. What each does to a message is decided by its kind alone:
 *
 * | kind | counts as a retry | what happens |
 * |---|---|---|
 * | `unavailable` | no | the lane's breaker opens; the rows are not touched |
 * | `failed` | yes | exponential backoff with jitter |
 * | `rejected` | at once | Failed, with the reason |
 * | `interrupted` | no | released, due at once |
 */
export type FailureKind = 'unavailable' | 'failed' | 'rejected' | 'interrupted';

/** Why an attempt did not succeed. */
export interface Failure {
  readonly kind: FailureKind;
  /** For a person: what happened, without payload and without secrets. */
  readonly reason: string;
  /**
   * Of an `unavailable` failure: true where no message can be its cause (no connection, throttled, no permission).
   * Without it the answer may be this message's fault, so that the relay tries others before it decides.
   */
  readonly laneWide?: boolean;
  /** The wait a handler asked for with `RetryAfter`. */
  readonly retryAfterSeconds?: number;
}
