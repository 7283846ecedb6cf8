import { Deadline } from '../delivery/deadline.ts';
import { defaults } from '../delivery/defaults.ts';
import type { MetricName } from '../delivery/telemetry.ts';
import { type RelayReport, runRelay } from '../outbox/relay.ts';
import { type RelayOptions, relayDefaults } from '../outbox/relay-options.ts';
import { makeDestinations } from '../publish/destinations.ts';
import type { Destinations } from '../publish/publisher.ts';
import { readSettings, type Settings } from './config.ts';
import { once, sharedConnections } from './connections.ts';
import type { Engine } from './engine.ts';
import { type InvocationContext, invocation } from './invocation.ts';
import { backoff, callable, checkOptions, common, oneOf, whole } from './options.ts';
import { countZeros } from './telemetry.ts';
import { relayWaker } from './wake.ts';
import { type Acknowledged, acknowledge, readTrigger, wakeNext } from './wake-event.ts';

/** Options of a relay function; everything else comes from its environment. */
export interface RelayFunctionOptions {
  /** Publishers of your own, by destination name, beside the environment's or instead of some of them. */
  readonly destinations?: Destinations;
  /** What the environment has no variable for. */
  readonly relay?: Partial<RelayOptions>;
  /** Connections of this process. @default 2 */
  readonly poolSize?: number;
  /** Settings other than the environment's. */
  readonly settings?: Settings;
}

const ms = whole(1, 43_200_000);

const rules = {
  batchSize: common.batchSize,
  maxBytes: whole(1, 1_073_741_824),
  parallelism: common.parallelism,
  leaseMs: ms,
  buckets: whole(1, defaults.buckets),
  afterSuccess: oneOf('keep', 'delete', 'archive'),
  onFailedKey: callable,
  mode: oneOf('scheduled', 'continuous'),
  pollMs: ms,
  sendTimeoutMs: ms,
  sliceMs: ms,
  maxHops: whole(0, 2_147_483_647),
};

/**
 * A relay function: wakes are acknowledged, any other event is a sweep and answers what was done. Rejects with
 * `ConfigurationError` where a queue's messages come instead of wakes, so that they stay there.
 */
export type RelayFunction = (
  event: unknown,
  context?: InvocationContext,
) => Promise<RelayReport | Acknowledged>;

const WORKER = 'outbox-relay';

/** What alarms watch: written as zero by every sweep. */
const WATCHED: readonly MetricName[] = ['Published', 'Failed', 'LostLeases', 'LaneOpened', 'HopLimit'];

/** Kept for giving leases back, the next wake and the metrics. */
const EPILOGUE_MS = 2_000;

/** Binds the relay function to an engine. Options are checked at once; nothing is read or connected before the first event. */
export function relayFor<Tx>(engine: Engine<Tx>): (options?: RelayFunctionOptions) => RelayFunction {
  return (options = {}) => {
    checkOptions('createRelay', options, { poolSize: common.poolSize });
    checkOptions("createRelay's relay", options.relay, rules);
    checkOptions("createRelay's relay.retry", options.relay?.retry, backoff);
    checkOptions("createRelay's relay.breaker", options.relay?.breaker, backoff);
    const start = once(async () => {
      const settings = options.settings ?? readSettings();
      const made = await makeDestinations(settings.destinations, settings);
      const destinations: Destinations = new Map([...made, ...(options.destinations ?? [])]);
      const connections = sharedConnections(engine, settings, { max: options.poolSize ?? 2 });
      const checked = once(() => connections.check('relay'));
      return { settings, destinations, connections, checked, options: relayOptions(settings, options.relay) };
    });

    return (event, context) =>
      invocation(context, async ({ deadline, signal, telemetry }) => {
        const trigger = readTrigger(event);
        const relay = await start();
        const waker = relayWaker(relay.settings, telemetry.logger);
        await relay.checked();
        if (trigger.sweep) countZeros(telemetry, WATCHED, relay.destinations.keys());
        const report = await runRelay({
          store: relay.connections.outbox,
          destinations: relay.destinations,
          deadline: beforeEpilogue(deadline),
          signal,
          telemetry,
          options: relay.options,
        });
        await wakeNext(waker, { ...report, progress: report.settled > 0 }, trigger, telemetry);
        await relay.connections.recordCycle(WORKER);
        return trigger.sweep ? report : acknowledge(trigger, 'the relay');
      });
  };
}

/** A short invocation keeps a part of its time, a long one no more than it needs. */
function beforeEpilogue(deadline: Deadline): Deadline {
  const leftMs = deadline.remainingMs();
  return Deadline.in(leftMs - Math.min(EPILOGUE_MS, leftMs / 4));
}

function relayOptions(settings: Settings, given: Partial<RelayOptions> = {}): RelayOptions {
  const { relay } = settings;
  return {
    ...relayDefaults,
    mode: relay.mode,
    pollMs: relay.pollSeconds * 1000,
    batchSize: relay.batchSize,
    parallelism: relay.parallelism,
    leaseMs: relay.leaseSeconds * 1000,
    afterSuccess: relay.afterSuccess,
    onFailedKey: (destination) => settings.destinations[destination]?.onFailedKey ?? relay.onFailedKey,
    retry: relay.retry,
    breaker: relay.breaker,
    ...given,
  };
}
