import { Duration } from 'aws-cdk-lib';
import { Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import type { MetricName } from '../../shared/delivery/telemetry.ts';
import type { AlarmSpec, Alarms } from './alarms.ts';
import type { RelayboxMetrics } from './metrics.ts';

/**
 * A lane without figures is one with nothing to say, or maintenance is dead, and that has its alarm. So the alarms of
 * lanes take silence for good.
 */
const missingData = TreatMissingData.NOT_BREACHING;

/** What the alarms of lanes are made with. */
export interface LaneAlarms {
  readonly alarms: Alarms;
  readonly metrics: RelayboxMetrics;
  /** Two of maintenance's cycles at least, so that no period is without a figure. */
  readonly figuresPeriod: Duration;
}

/** The age of a lane's oldest due message: the one figure that every stop of whatever cause ends in. */
export function alarmOnAge(
  { alarms, metrics, figuresPeriod: period }: LaneAlarms,
  lane: string,
  age: Duration,
): void {
  alarms.add(`OldestDueAge ${lane}`, {
    metric: metrics.ofLane('OldestDueAgeSeconds', lane, { period, statistic: Stats.MAXIMUM }),
    threshold: age.toSeconds(),
    missingData,
    what: `Lane ${lane}: a message has been due for ${age.toHumanString()} or longer, and nobody takes it.`,
    todo: 'See whether the lane is open, its worker fails or is throttled, or more comes than goes.',
    runbook: 'oldest-due-message-too-old-oldestdueageseconds',
  });
}

/** One alarm for each trouble, over all lanes, those included that no template names. */
export function alarmOnLanes({ alarms, metrics, figuresPeriod }: LaneAlarms): void {
  const state = (metric: MetricName, spec: Omit<AlarmSpec, 'metric' | 'missingData'>): void => {
    // Alarms on queries see the last three hours only.
    const seen = Math.max(1, Math.floor(180 / figuresPeriod.toMinutes()));
    const periods = Math.min(spec.periods ?? 1, seen);
    alarms.add(metric, {
      ...spec,
      periods,
      missingData,
      metric: metrics.ofLanes(metric, 'MAX', figuresPeriod),
    });
  };
  const event = (
    metric: MetricName,
    minutes: number,
    spec: Omit<AlarmSpec, 'metric' | 'missingData'>,
  ): void => {
    const period = Duration.minutes(minutes);
    alarms.add(metric, { ...spec, missingData, metric: metrics.ofLanes(metric, 'SUM', period) });
  };

  state('FailedMessages', {
    what: 'Messages are Failed: their retries are used up, or they can never succeed.',
    todo: 'Read their errors (relaybox failed), mend the cause, then requeue or discard them.',
    runbook: 'failed-messages-failedmessages',
  });
  state('BlockedKeys', {
    what: 'A Failed message blocks its partition key, and all that comes after it waits.',
    todo: 'Requeue it when its cause is mended, or discard it with a reason.',
    runbook: 'blocked-keys-blockedkeys',
  });
  // One reading of an open lane is a blip that the next probe may have ended.
  state('OpenLanes', {
    periods: 2,
    what: 'A lane is paused by its breaker: its destination is unavailable, or is not mapped.',
    todo: 'Its last error is in relaybox status: mend mapping or policy, or wait for the outage to end.',
    runbook: 'a-lane-is-open-openlanes',
  });
  state('UnhandledTypes', {
    what: 'Messages of a type are due, and no handler asks for them.',
    todo: 'Deploy its handler, or find out why it is not invoked; nothing is lost meanwhile.',
    runbook: 'a-type-without-a-handler-unhandledtypes',
  });
  // Once is an incident of the platform. Again and again is a function that its work kills.
  state('ExpiredLeases', {
    periods: 3,
    what: 'Leases ran out and were not taken over: workers are killed or frozen, and none comes after them.',
    todo: 'Look for timeouts and out-of-memory in the functions that work on this lane.',
    runbook: 'leases-ran-out-expiredleases-lost-leases-lostleases',
  });
  event('LostLeases', 5, {
    periods: 12,
    badPeriods: 3,
    what: 'Workers came back to leases that had run out, three times within an hour.',
    todo: 'Compare timeout, memory and lease of the functions; look for a second worker on the same table.',
    runbook: 'leases-ran-out-expiredleases-lost-leases-lostleases',
  });
  // The longest wait between two attempts is five minutes, so in each ten there is one while something goes on failing.
  event('Retried', 10, {
    periods: 6,
    what: 'Messages of a lane have failed again and again for an hour.',
    todo: 'Look at the message whose attempts grow (relaybox status, relaybox show <id>), not at the lane.',
    runbook: 'poison-attempts-retried',
  });
  event('DuplicatesThatDiffer', 5, {
    what: 'A sender used one id for two payloads; the first was kept, the second dropped.',
    todo: "Find id and sender in the ingest function's log.",
    runbook: 'duplicates-that-differ-duplicatesthatdiffer',
  });
  event('HopLimit', 5, {
    what: 'A message was caused by a message, dozens of times over: two services answer each other.',
    todo: 'Find them by the types in relaybox failed, break the loop, discard the rest.',
    runbook: 'hop-limit-hoplimit-wakehoplimit',
  });
}
