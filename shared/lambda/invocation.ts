import type { Deadline } from '../delivery/deadline.ts';
import { untilDeadline } from './connections.ts';
import { untilShutdown } from './shutdown.ts';
import { type InvocationIdentity, type InvocationTelemetry, lambdaTelemetry } from './telemetry.ts';
import { deadlineOf } from './unit-of-work.ts';

/** What of Lambda's context Relaybox's functions use. Everything is optional, so that a test or a host can leave it out. */
export interface InvocationContext extends InvocationIdentity {
  getRemainingTimeInMillis?(): number;
}

/** What one invocation works with. */
export interface Invocation {
  /** The invocation's end. */
  readonly deadline: Deadline;
  /** Aborted when the process is asked to end. */
  readonly signal: AbortSignal;
  readonly telemetry: InvocationTelemetry;
}

/** Runs one invocation; its metrics are written whatever the end is. */
export async function invocation<Result>(
  context: InvocationContext | undefined,
  work: (invocation: Invocation) => Promise<Result>,
): Promise<Result> {
  const telemetry = lambdaTelemetry(context);
  const deadline = deadlineOf(context ?? {});
  try {
    return await untilShutdown((signal) =>
      untilDeadline(deadline, () => work({ deadline, signal, telemetry })),
    );
  } finally {
    telemetry.flush();
  }
}
