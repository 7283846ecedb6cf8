/** How Relaybox's AWS clients behave: they give up early, since the relay's own backoff is what waits. */
export interface ClientOptions {
  /**
   * Given explicitly where it isn't AWS's own: with the environment variable alone the client would use the host of
   * the queue's URL, which an emulator makes up.
   */
  readonly endpoint: string | undefined;
}

/** Configuration for a client of the AWS SDK. A try takes 5 s at most, and there are two. */
export function clientConfiguration(options: ClientOptions) {
  return {
    maxAttempts: 2,
    requestHandler: { connectionTimeout: 3_000, requestTimeout: 5_000, throwOnRequestTimeout: true },
    ...(options.endpoint !== undefined && { endpoint: options.endpoint }),
  };
}

/** A send was stopped by the caller's own signal, which says nothing about the broker. */
export class SendInterrupted extends Error {}

/** Runs a call, and tells an abort by our own signal from every other error. */
export async function unlessInterrupted<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  try {
    signal.throwIfAborted();
    return await call();
  } catch (error) {
    const timedOut = signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError';
    // A limit on the call's time that ran out is an answer that did not come: an outage, as far as anybody knows.
    if (signal.aborted && timedOut) throw signal.reason;
    if (signal.aborted) throw new SendInterrupted('the send was stopped', { cause: error });
    throw error;
  }
}
