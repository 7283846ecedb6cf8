import type { SQSClient } from '@aws-sdk/client-sqs';
import type { Logger } from '../delivery/telemetry.ts';
import { createWaker, type SendWake, type Waker } from '../outbox/wake.ts';
import { lazySqsClient } from './lazy-client.ts';

/** How a wake queue is reached. */
export interface QueueWakerOptions {
  /** An endpoint other than AWS's own. */
  readonly endpoint?: string | undefined;
  readonly logger?: Logger | undefined;
}

/** One for each queue and process, since a waker throttles. */
const wakers = new Map<string, Waker>();

/**
 * The process's waker of a standard queue. Its client begins to load at once, while the function starts: in the first
 * wake's 200 ms there is no time for it.
 */
export function queueWaker(url: string, options: QueueWakerOptions = {}): Waker {
  const { endpoint, logger } = options;
  const key = JSON.stringify([url, endpoint]);
  const waker =
    wakers.get(key) ?? createWaker(wakeSender(url, lazySqsClient(endpoint)), logger ? { logger } : {});
  wakers.set(key, waker);
  return waker;
}

/** Sends wakes to a standard queue. The client may still be loading. */
export function wakeSender(url: string, client: SQSClient | Promise<SQSClient>): SendWake {
  return async (body, delaySeconds) => {
    const { SendMessageCommand } = await import('@aws-sdk/client-sqs');
    const ready = await client;
    await ready.send(
      new SendMessageCommand({ QueueUrl: url, MessageBody: body, DelaySeconds: delaySeconds }),
    );
  };
}
