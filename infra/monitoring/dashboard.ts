import { Duration } from 'aws-cdk-lib';
import { type Alarm, type IMetric, type IWidget, Stats, TextWidget } from 'aws-cdk-lib/aws-cloudwatch';
import type { IQueue } from 'aws-cdk-lib/aws-sqs';
import type { MetricName } from '../../shared/delivery/telemetry.ts';
import { handlerLane } from './lane.ts';
import type { RelayboxMetrics } from './metrics.ts';
import type { ConsumerPart, DeadLetterQueuePart, HandlerPart, MonitoringParts } from './parts.ts';
import { functionAxes, heading, LateAlarms, LateGraph, queueLengths } from './widgets.ts';

/** What the dashboard shows. The lists grow until the template is written. */
export interface DashboardView {
  readonly parts: MonitoringParts;
  readonly metrics: RelayboxMetrics;
  readonly alarms: readonly Alarm[];
  /** Ingests, and consumers straight from their queues. */
  readonly consumers: readonly ConsumerPart[];
  readonly handlers: readonly HandlerPart[];
  readonly deadLetterQueues: readonly DeadLetterQueuePart[];
}

const period = Duration.minutes(5);

/** Rows of the dashboard. A message's way is from left to right; from top to bottom: flow, waiting, trouble, functions. */
export function dashboardRows(view: DashboardView): IWidget[][] {
  return [
    [new LateAlarms(view.alarms)],
    [heading('Outbox →'), heading('Relay →'), heading('Queues, ingest →'), heading('Inbox, handlers')],
    flow(view),
    waiting(view),
    trouble(view),
    functions(view),
    everywhere(view),
    [help(view)],
  ];
}

function flow(view: DashboardView): IWidget[] {
  const { metrics, parts } = view;
  const sums = (metric: MetricName, lanes: readonly string[]): IMetric[] =>
    ofLanes(metrics, metric, lanes, Stats.SUM);
  const destinations = parts.destinations.map(({ name }) => name);
  return [
    new LateGraph('Added', () => ({ left: sums('Added', destinations) })),
    new LateGraph('Published', () => ({ left: sums('Published', destinations) })),
    // Ingest counts by the type that it finds, and may find any.
    new LateGraph('Ingested', () =>
      view.consumers.length === 0
        ? { left: [] }
        : { left: [metrics.search('Ingested', { period, statistic: Stats.SUM })] },
    ),
    new LateGraph('Handled, ms', () => ({
      left: sums('Handled', types(view)),
      right: ofLanes(metrics, 'HandlerMs', types(view), Stats.p(99)),
    })),
  ];
}

function waiting(view: DashboardView): IWidget[] {
  const { metrics, parts } = view;
  const ages = (lanes: readonly string[]): IMetric[] =>
    ofLanes(metrics, 'OldestDueAgeSeconds', lanes, Stats.MAXIMUM);
  const backlog = (lanes: readonly string[]): IMetric[] => ofLanes(metrics, 'Backlog', lanes, Stats.MAXIMUM);
  const destinations = parts.destinations.map(({ name }) => name);
  return [
    new LateGraph('Oldest due (s), backlog', () => ({
      left: ages(destinations),
      right: backlog(destinations),
    })),
    new LateGraph('Destination and wake queues', () => ({
      left: queueLengths([
        ...parts.destinations.flatMap(({ name, queue }) => named(name, queue)),
        ...named('wake', parts.wakeQueue),
      ]),
    })),
    new LateGraph('Inbox queues, age (s)', () => ({
      left: queueLengths(view.consumers),
      right: view.consumers.map(({ name, queue }) =>
        queue.metricApproximateAgeOfOldestMessage({
          period,
          statistic: Stats.MAXIMUM,
          label: `${name}: age`,
        }),
      ),
    })),
    new LateGraph('Oldest due (s), backlog', () => {
      const lanes = view.handlers.map(handlerLane);
      return { left: ages(lanes), right: backlog(lanes) };
    }),
  ];
}

function trouble(view: DashboardView): IWidget[] {
  const { metrics, parts } = view;
  const states = (names: readonly MetricName[], lanes: readonly string[]): IMetric[] =>
    names.flatMap((metric) => ofLanes(metrics, metric, lanes, Stats.MAXIMUM, metric));
  const events = (names: readonly MetricName[], lanes: readonly string[]): IMetric[] =>
    names.flatMap((metric) => ofLanes(metrics, metric, lanes, Stats.SUM, metric));
  const destinations = parts.destinations.map(({ name }) => name);
  return [
    new LateGraph('Failed, blocked, open, paused', () => ({
      left: states(['FailedMessages', 'BlockedKeys'], destinations),
      right: states(['OpenLanes', 'PausedLanes'], destinations),
    })),
    new LateGraph('Retried, lost leases', () => ({ left: events(['Retried', 'LostLeases'], destinations) })),
    new LateGraph('Dead-letter queues', () => ({ left: queueLengths(view.deadLetterQueues) })),
    new LateGraph('Failed, blocked, retried', () => ({
      left: states(['FailedMessages', 'BlockedKeys'], view.handlers.map(handlerLane)),
      right: events(['Retried', 'LostLeases'], types(view)),
    })),
  ];
}

function functions(view: DashboardView): IWidget[] {
  const { relay, maintain } = view.parts;
  return [
    new LateGraph('Maintain', () => functionAxes([maintain])),
    new LateGraph('Relay', () => functionAxes([relay])),
    new LateGraph('Ingest, consumers', () => functionAxes(view.consumers)),
    new LateGraph('Handlers', () => functionAxes(view.handlers)),
  ];
}

/** All lanes there are, those included that no template names, and the database they share. */
function everywhere({ metrics, parts: { database } }: DashboardView): IWidget[] {
  const all = (metric: MetricName) => metrics.search(metric, { period, statistic: Stats.MAXIMUM });
  const connections = database?.connections;
  return [
    new LateGraph('Oldest due, every lane (s)', () => ({ left: [all('OldestDueAgeSeconds')] })),
    new LateGraph('Failed, every lane', () => ({ left: [all('FailedMessages')] })),
    new LateGraph('Without a handler', () => ({ left: [all('UnhandledTypes')] })),
    new LateGraph('Database connections', () => ({ left: connections === undefined ? [] : [connections] })),
  ];
}

function help({ parts: { maintain, runbookUrl } }: DashboardView): IWidget {
  const command = `relaybox doctor --function ${maintain.function.functionName}`;
  const runbook = runbookUrl === undefined ? '' : ` [Runbook](${runbookUrl}).`;
  return new TextWidget({
    markdown: `What is wrong, on what evidence, and what to do: \`${command}\`.${runbook}`,
    width: 24,
    height: 2,
  });
}

function ofLanes(
  metrics: RelayboxMetrics,
  metric: MetricName,
  lanes: readonly string[],
  statistic: string,
  what?: string,
): IMetric[] {
  return lanes.map((lane) => {
    const label = what === undefined ? lane : `${lane}: ${what}`;
    return metrics.ofLane(metric, lane, { period, statistic }).with({ label });
  });
}

/** Handlers count what they do by type alone: two consumers of one type share a line. */
function types({ handlers }: DashboardView): string[] {
  return [...new Set(handlers.map(({ messageType }) => messageType))];
}

function named(name: string, queue: IQueue | undefined): { name: string; queue: IQueue }[] {
  return queue === undefined ? [] : [{ name, queue }];
}
