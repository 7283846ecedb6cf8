/** What runs now, and is told when the process is asked to end. */
const running = new Set<AbortController>();

/** Long enough for the answer to leave the process. */
const GRACE_MS = 50;

/**
 * Runs work with a signal that is aborted on SIGTERM, so that it gives back what it has not begun. Outside of such work
 * SIGTERM does what it always does; the process's own listeners, where it has some, are left alone.
 */
export async function untilShutdown<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const controller = new AbortController();
  if (running.size === 0) process.on('SIGTERM', abortAll);
  running.add(controller);
  try {
    return await work(controller.signal);
  } finally {
    running.delete(controller);
    if (running.size === 0) {
      process.removeListener('SIGTERM', abortAll);
      // The signal was held back from its default, which is to end: it is due now.
      if (controller.signal.aborted && process.listenerCount('SIGTERM') === 0) endSoon();
    }
  }
}

function abortAll(): void {
  for (const controller of running) controller.abort(new Error('the process is being shut down'));
}

function endSoon(): void {
  setTimeout(() => process.kill(process.pid, 'SIGTERM'), GRACE_MS).unref();
}
