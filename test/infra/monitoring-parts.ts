import { App, Duration, Stack } from 'aws-cdk-lib';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { Metric } from 'aws-cdk-lib/aws-cloudwatch';
import { Code, Function as LambdaFunction, Runtime } from 'aws-cdk-lib/aws-lambda';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { Monitoring } from '../../infra/monitoring/monitoring.ts';
import type { HandlerPart, IngestPart, MonitoringParts } from '../../infra/monitoring/parts.ts';

/** An alarm as the template has it. */
export interface TemplateAlarm {
  readonly AlarmDescription: unknown;
  readonly TreatMissingData?: string;
  readonly MetricName?: string;
  readonly Namespace?: string;
  readonly Dimensions?: readonly { readonly Name: string; readonly Value: unknown }[];
  readonly Metrics?: readonly { readonly Expression?: string; readonly Period?: number }[];
  readonly Threshold: number;
  readonly Period?: number;
  readonly EvaluationPeriods: number;
  readonly DatapointsToAlarm?: number;
  readonly ComparisonOperator: string;
  readonly AlarmActions?: readonly unknown[];
  readonly OKActions?: readonly unknown[];
}

/** A stack with things to watch, and the monitoring of them. */
export function monitored(change: (parts: MonitoringParts) => Partial<MonitoringParts> = () => ({})) {
  const stack = new Stack(new App(), 'Watched');
  const fn = (id: string, seconds = 60): LambdaFunction =>
    new LambdaFunction(stack, id, {
      runtime: Runtime.NODEJS_24_X,
      handler: 'index.handler',
      code: Code.fromInline('exports.handler = () => undefined;'),
      timeout: Duration.seconds(seconds),
    });
  const queue = (id: string): Queue => new Queue(stack, id);
  const ingest: IngestPart = {
    name: 'Ingest payments-service',
    function: fn('Ingest'),
    source: 'payments-service',
    queue: queue('Incoming'),
    deadLetterQueue: queue('Dead'),
  };
  const handler: HandlerPart = {
    name: 'Handler order.placed',
    function: fn('Handler', 30),
    messageType: 'order.placed',
  };
  const all: MonitoringParts = {
    service: 'orders-service',
    alarmTopic: new Topic(stack, 'Topic'),
    relay: { name: 'Relay', function: fn('Relay'), every: Duration.minutes(1) },
    maintain: { name: 'Maintain', function: fn('Maintain', 300), every: Duration.minutes(5) },
    destinations: [{ name: 'orders', queue: queue('Orders') }, { name: 'events' }],
    ingests: [ingest],
    handlers: [handler],
    database: {
      connections: new Metric({
        namespace: 'AWS/RDS',
        metricName: 'DatabaseConnections',
        dimensionsMap: { DBClusterIdentifier: 'app' },
        statistic: 'Maximum',
      }),
      maxConnections: 100,
    },
  };
  const parts = { ...all, ...change(all) };
  const monitoring = new Monitoring(stack, 'Monitoring', parts);
  return { stack, monitoring, fn, queue };
}

/** The alarms of a template, by the id that they were given (without what is not a letter or digit). */
export function alarmsOf(stack: Stack): Record<string, TemplateAlarm> {
  const found = Template.fromStack(stack).findResources('AWS::CloudWatch::Alarm', Match.anyValue());
  return Object.fromEntries(
    Object.entries(found).map(([id, resource]) => [
      id.replace(/^Monitoring/, '').replace(/[0-9A-F]{8}$/, ''),
      (resource as { Properties: TemplateAlarm }).Properties,
    ]),
  );
}

/** A description's text; references stand as `{Ref}`. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  const [separator, pieces] = (value as { 'Fn::Join': [string, unknown[]] })['Fn::Join'];
  return pieces.map((piece) => (typeof piece === 'string' ? piece : '{Ref}')).join(separator);
}

/** A widget as the dashboard's body has it. */
export interface Widget {
  readonly type: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly properties: {
    readonly title?: string;
    readonly markdown?: string;
    readonly metrics?: unknown[];
    readonly alarms?: unknown[];
  };
}

/** The dashboard's body, as text; references stand as their ids. */
export function bodyOf(stack: Stack): string {
  const [dashboard] = Object.values(Template.fromStack(stack).findResources('AWS::CloudWatch::Dashboard'));
  const body = (dashboard as { Properties: { DashboardBody: { 'Fn::Join': [string, unknown[]] } } })
    .Properties;
  const [, pieces] = body.DashboardBody['Fn::Join'];
  return pieces.map((piece) => (typeof piece === 'string' ? piece : idOf(piece))).join('');
}

/** The dashboard's widgets. */
export function widgetsOf(stack: Stack): Widget[] {
  return (JSON.parse(bodyOf(stack)) as { widgets: Widget[] }).widgets;
}

function idOf(reference: unknown): string {
  const { Ref, 'Fn::GetAtt': [id] = [] } = reference as { Ref?: string; 'Fn::GetAtt'?: string[] };
  return String(Ref ?? id);
}
