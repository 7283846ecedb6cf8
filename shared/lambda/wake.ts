import type { SQSClient } from '@aws-sdk/client-sqs';
import type { Logger } from '../delivery/telemetry.ts';
import { createWaker, type SendWake, type Waker } from '../outbox/wake.ts';
import type { Settings } from './config.ts';

/** What of the settings a waker needs. */
export type WakeSettings = Pick<Settings, 'wakeQueueUrl' | 'inboxWakeQueueUrls' | 'endpoints'>;

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

/** Wakes the relay; undefined where no wake queue is set, so that the sweep is left. */
export function relayWaker(settings: WakeSettings, logger?: Logger): Waker | undefined {
  const { wakeQueueUrl } = settings;
  return wakeQueueUrl === undefined ? undefined : queueWaker(wakeQueueUrl, settings, logger);
}

/** Wakes handlers, by message type. */
export function inboxWakers(settings: WakeSettings, logger?: Logger): ReadonlyMap<string, Waker> {
  const queues = Object.entries(settings.inboxWakeQueueUrls);
  return new Map(queues.map(([messageType, url]) => [messageType, queueWaker(url, settings, logger)]));
}

/** One for each queue and process, since a waker throttles. */
const wakers = new Map<string, Waker>();
const clients = new Map<string | undefined, Promise<SQSClient>>();

function queueWaker(url: string, settings: WakeSettings, logger: Logger | undefined): Waker {
  const key = JSON.stringify([url, settings.endpoints.sqs]);
  const waker =
    wakers.get(key) ?? createWaker(wakeSender(url, loadClient(settings)), logger ? { logger } : {});
  wakers.set(key, waker);
  return waker;
}

/** Begins to load at once, while the function starts: in the first wake's 200 ms there is no time for it. */
function loadClient(settings: WakeSettings): Promise<SQSClient> {
  const { sqs: endpoint } = settings.endpoints;
  const loading =
    clients.get(endpoint) ?? import('../publish/sqs.ts').then(({ sqsClient }) => sqsClient({ endpoint }));
  // Whoever sends sees the error; nobody may be there yet.
  loading.catch(() => clients.delete(endpoint));
  clients.set(endpoint, loading);
  return loading;
}
