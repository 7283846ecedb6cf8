import type { Logger } from '../delivery/telemetry.ts';
import type { Waker } from '../outbox/wake.ts';
import { queueWaker } from '../publish/wake.ts';
import type { Settings } from './config.ts';

/** What of the settings a waker needs. */
export type WakeSettings = Pick<Settings, 'wakeQueueUrl' | 'inboxWakeQueueUrls' | 'endpoints'>;

/** Wakes the relay; undefined where no wake queue is set, so that the sweep is left. */
export function relayWaker(settings: WakeSettings, logger?: Logger): Waker | undefined {
  const { wakeQueueUrl, endpoints } = settings;
  return wakeQueueUrl === undefined
    ? undefined
    : queueWaker(wakeQueueUrl, { endpoint: endpoints.sqs, logger });
}

/** Wakes handlers, by message type. */
export function inboxWakers(settings: WakeSettings, logger?: Logger): ReadonlyMap<string, Waker> {
  const options = { endpoint: settings.endpoints.sqs, logger };
  const queues = Object.entries(settings.inboxWakeQueueUrls);
  return new Map(queues.map(([messageType, url]) => [messageType, queueWaker(url, options)]));
}
