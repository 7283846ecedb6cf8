import { type Backoff, backoffSeconds } from '../delivery/backoff.ts';
import { errorText } from '../delivery/error-text.ts';
import type { Failure } from '../delivery/failure.ts';

/** What to write for a message that was not handled. */
export type Verdict =
  /** Given back, due at once, nothing counted. */
  | { readonly write: 'release'; readonly reason: string }
  /** A counted failure; without a wait it ends in Failed at once. */
  | { readonly write: 'failure'; readonly reason: string; readonly retryInSeconds: number | undefined };

/**
 * Tells why a handler did not succeed, by what it threw. Whether the database went away isn't decided by that: an error
 * like `ECONNREFUSED` is the handler's own, from whatever else it called. Never throws.
 */
export function classify(error: unknown): Failure {
  const { code, seconds } = facts(error);
  if (code === 'RELAYBOX_REJECTED') return { kind: 'rejected', reason: errorText(error) };
  if (code === 'RELAYBOX_RETRY_AFTER' && typeof seconds === 'number' && seconds >= 0) {
    return { kind: 'failed', reason: errorText(error), retryAfterSeconds: seconds };
  }
  return { kind: 'failed', reason: errorText(error) };
}

/** By code, not by class: the application's bundle may carry another copy of it. What can't be read says nothing. */
function facts(error: unknown): { readonly code?: unknown; readonly seconds?: unknown } {
  try {
    const { code, seconds } = (error ?? {}) as { readonly code?: unknown; readonly seconds?: unknown };
    return { code, seconds };
  } catch {
    return {};
  }
}

/** Decides what a failure does to its message. `attempt` is 1 at the first. */
export function verdictOf(failure: Failure, attempt: number, retry: Backoff): Verdict {
  const { kind, reason, retryAfterSeconds } = failure;
  switch (kind) {
    case 'unavailable':
    case 'interrupted':
      return { write: 'release', reason };
    case 'rejected':
      return { write: 'failure', reason, retryInSeconds: undefined };
    case 'failed':
      return {
        write: 'failure',
        reason,
        retryInSeconds: retryAfterSeconds ?? backoffSeconds(attempt, retry),
      };
  }
}
