import { Logger as PowertoolsLogger } from '@aws-lambda-powertools/logger';
import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';
import type { Logger, MetricName, Telemetry } from '../delivery/telemetry.ts';

/** The telemetry of one invocation. */
export interface InvocationTelemetry extends Telemetry {
  /** Writes what was counted, as EMF. Called once, at the end, whatever the end is. */
  flush(): void;
}

/** What of Lambda's context goes into every log line. */
export interface InvocationIdentity {
  readonly awsRequestId?: string;
  readonly functionName?: string;
}

/** Values that are states, not events: of two in one invocation the higher one counts. */
const GAUGES: ReadonlySet<MetricName> = new Set<MetricName>([
  'OldestDueAgeSeconds',
  'Backlog',
  'FailedMessages',
  'BlockedKeys',
  'ExpiredLeases',
  'PausedLanes',
  'OpenLanes',
  'UnhandledTypes',
]);

/** Kept value by value, so that CloudWatch can answer percentiles. */
const SAMPLED: ReadonlySet<MetricName> = new Set<MetricName>(['HandlerMs']);

/** Powertools writes its blob out early at 100 values of one metric. */
const MAX_SAMPLES = 99;

/** Powertools' own objects: one per process, without any state of an invocation in them. */
let powertools: { readonly logger: PowertoolsLogger; readonly metrics: Metrics } | undefined;

/**
 * Powertools' Logger and Metrics as Relaybox's telemetry. Counts are added up here first: EMF drops what exceeds a
 * hundred values of a metric, and a blob holds one value of a dimension, so there is one blob for each lane and not one
 * for each message. Namespace and service come from `POWERTOOLS_METRICS_NAMESPACE` and `POWERTOOLS_SERVICE_NAME`.
 * Neither payloads nor headers are ever logged.
 */
export function lambdaTelemetry(identity: InvocationIdentity = {}): InvocationTelemetry {
  powertools ??= {
    logger: new PowertoolsLogger(),
    metrics: new Metrics({ namespace: process.env['POWERTOOLS_METRICS_NAMESPACE'] || 'Relaybox' }),
  };
  const { metrics } = powertools;
  const lanes = new Map<string | undefined, Map<MetricName, number[]>>();
  return {
    logger: loggerOf(powertools.logger, identity),
    count(metric, value, lane) {
      if (!Number.isFinite(value)) return;
      const counts = lanes.get(lane) ?? new Map<MetricName, number[]>();
      lanes.set(lane, counts);
      counts.set(metric, added(metric, counts.get(metric), value));
    },
    flush() {
      for (const [lane, counts] of lanes) publish(metrics, lane, counts);
      lanes.clear();
    },
  };
}

/** Counts zero for metrics that alarms watch, so that "nothing happened" and "nothing ran" look different. */
export function countZeros(
  telemetry: Telemetry,
  metrics: readonly MetricName[],
  lanes: Iterable<string>,
): void {
  for (const lane of lanes) for (const metric of metrics) telemetry.count(metric, 0, lane);
}

function added(metric: MetricName, values: number[] | undefined, value: number): number[] {
  const first = values?.[0];
  if (values === undefined || first === undefined) return [value];
  if (SAMPLED.has(metric)) return values.length < MAX_SAMPLES ? [...values, value] : values;
  return [GAUGES.has(metric) ? Math.max(first, value) : first + value];
}

// No await in here: Powertools collects in the instance, and invocations may run side by side.
function publish(
  metrics: Metrics,
  lane: string | undefined,
  counts: ReadonlyMap<MetricName, number[]>,
): void {
  if (lane) metrics.addDimension('lane', lane);
  for (const [metric, values] of counts) {
    for (const value of values) metrics.addMetric(metric, unitOf(metric), value);
  }
  metrics.publishStoredMetrics();
}

function unitOf(metric: MetricName): (typeof MetricUnit)[keyof typeof MetricUnit] {
  if (metric.endsWith('Seconds')) return MetricUnit.Seconds;
  return metric.endsWith('Ms') ? MetricUnit.Milliseconds : MetricUnit.Count;
}

function loggerOf(parent: PowertoolsLogger, identity: InvocationIdentity): Logger {
  const child = parent.createChild({
    persistentKeys: {
      ...(identity.functionName && { function_name: identity.functionName }),
      ...(identity.awsRequestId && { function_request_id: identity.awsRequestId }),
    },
  });
  return {
    debug: (message, fields = {}) => child.debug(message, fields),
    info: (message, fields = {}) => child.info(message, fields),
    warn: (message, fields = {}) => child.warn(message, fields),
    error: (message, fields = {}) => child.error(message, fields),
  };
}
