import { readFileSync } from 'node:fs';
import { Duration } from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { lambdaTelemetry } from '../../shared/lambda/telemetry.ts';
import { alarmsOf, bodyOf, monitored, textOf, widgetsOf } from './monitoring-parts.ts';

// A synth takes a second, and many where other tests take the processor.
vi.setConfig({ testTimeout: 120_000 });

/** Headings of a document, as GitHub makes anchors of them. */
function anchorsOf(path: string): string[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => /^#{1,6} /.test(line))
    .map((line) =>
      line
        .replace(/^#+ /, '')
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    );
}

describe('each alarm', () => {
  const alarms = alarmsOf(monitored().stack);

  it.each(Object.entries(alarms))('%s says what to do, and its runbook section exists', (_, alarm) => {
    const text = textOf(alarm.AlarmDescription);
    expect(text).toContain('relaybox doctor --function {Ref}');
    const anchor = /docs\/operations\.md#(\S+)$/.exec(text)?.[1];
    expect(anchorsOf('docs/operations.md')).toContain(anchor);
    // CloudWatch takes 1024 characters; a function's name takes 64 of them.
    expect(text.length).toBeLessThan(900);
  });

  it.each(Object.entries(alarms))(
    '%s says what silence means, and tells the topic of begin and end',
    (_, alarm) => {
      expect(alarm.TreatMissingData).toMatch(/^(breaching|notBreaching)$/);
      expect(alarm.AlarmActions).toEqual([{ Ref: expect.stringContaining('Topic') }]);
      expect(alarm.OKActions).toEqual(alarm.AlarmActions);
    },
  );

  it.each(Object.entries(alarms))('%s fits in what CloudWatch evaluates', (_, alarm) => {
    const period = alarm.Period ?? Math.max(...(alarm.Metrics ?? []).map((metric) => metric.Period ?? 60));
    const isQuery = alarm.Metrics?.some(({ Expression = '' }) => Expression.startsWith('SELECT')) ?? false;
    expect(period * alarm.EvaluationPeriods).toBeLessThanOrEqual(isQuery ? 3 * 3600 : 86_400);
    expect(alarm.DatapointsToAlarm).toBeLessThanOrEqual(alarm.EvaluationPeriods);
  });
});

describe('what rings by its silence', () => {
  it('is the relay and maintenance, and nothing else', () => {
    const breaching = Object.entries(alarmsOf(monitored().stack))
      .filter(([, alarm]) => alarm.TreatMissingData === 'breaching')
      .map(([id]) => id);
    expect(breaching).toEqual(['Relaynotrunning', 'Maintainnotrunning']);
  });

  it('counts invocations that ended well: a relay that only fails does not run', () => {
    const { Relaynotrunning: alarm } = alarmsOf(monitored().stack);
    expect(alarm?.Metrics?.[0]).toMatchObject({ Expression: 'invocations - errors' });
    expect(alarm).toMatchObject({
      Threshold: 1,
      ComparisonOperator: 'LessThanThreshold',
      EvaluationPeriods: 5,
    });
  });

  it('waits as long as the schedule is sparse', () => {
    const every = Duration.minutes(30);
    const { stack } = monitored(({ relay }) => ({ relay: { ...relay, every } }));
    const alarms = alarmsOf(stack);
    expect(alarms['Relaynotrunning']?.Metrics?.[1]).toMatchObject({ MetricStat: { Period: 1800 } });
    expect(alarms['Relaynotrunning']?.EvaluationPeriods).toBe(3);
    // A message whose wake got lost is due until the next sweep, and that is no fault.
    expect(alarms['OldestDueAgeorders']?.Threshold).toBe(3600);
  });
});

describe('lanes', () => {
  it('have an alarm each on the age of their oldest due message', () => {
    const alarms = alarmsOf(monitored().stack);
    for (const lane of ['orders', 'events', 'order.placed']) {
      expect(alarms[`OldestDueAge${lane.replace('.', '')}`]).toMatchObject({
        Namespace: 'Relaybox',
        MetricName: 'OldestDueAgeSeconds',
        Statistic: 'Maximum',
        Threshold: 300,
        Dimensions: [
          { Name: 'lane', Value: lane },
          { Name: 'service', Value: 'orders-service' },
        ],
      });
    }
  });

  it('of another consumer go by the name that maintenance gives them', () => {
    const { stack } = monitored(({ handlers = [] }) => ({
      handlers: handlers.map((handler) => ({ ...handler, consumer: 'emails' })),
    }));
    const lanes = Object.values(alarmsOf(stack)).flatMap((alarm) =>
      alarm.Dimensions?.map(({ Value }) => Value),
    );
    expect(lanes).toContain('emails/order.placed');
  });

  it.each([
    ['FailedMessages', 'MAX'],
    ['BlockedKeys', 'MAX'],
    ['OpenLanes', 'MAX'],
    ['UnhandledTypes', 'MAX'],
    ['ExpiredLeases', 'MAX'],
    ['LostLeases', 'SUM'],
    ['Retried', 'SUM'],
    ['DuplicatesThatDiffer', 'SUM'],
    ['HopLimit', 'SUM'],
  ])('that no template names ring too: %s', (metric, aggregate) => {
    const alarm = alarmsOf(monitored().stack)[metric];
    expect(alarm?.Metrics).toHaveLength(1);
    expect(alarm?.Metrics?.[0]?.Expression).toBe(
      `SELECT ${aggregate}(${metric}) FROM SCHEMA("Relaybox", service, lane) WHERE service = 'orders-service' GROUP BY lane`,
    );
  });

  it('ring for attempts only when they go on and on: six of six times ten minutes', () => {
    const { Retried } = alarmsOf(monitored().stack);
    expect(Retried).toMatchObject({ EvaluationPeriods: 6, DatapointsToAlarm: 6, Threshold: 1 });
    // The longest backoff is five minutes and a sweep: each ten minutes have an attempt.
    expect(Retried?.Metrics?.[0]?.Period).toBe(600);
  });

  it('have figures in every period, because it is two cycles of maintenance', () => {
    const every = Duration.minutes(15);
    const { stack } = monitored(({ maintain }) => ({ maintain: { ...maintain, every } }));
    expect(alarmsOf(stack)['OldestDueAgeorders']?.Period).toBe(1800);
    expect(alarmsOf(stack)['FailedMessages']?.Metrics?.[0]?.Period).toBe(1800);
  });
});

describe('sparse maintenance', () => {
  it('is said at synth where alarms would be blind by it', () => {
    const every = Duration.hours(6);
    const { stack } = monitored(({ maintain }) => ({ maintain: { ...maintain, every } }));
    Annotations.fromStack(stack).hasWarning(
      '*',
      Match.stringLikeRegexp('runs every 6 hours.*90 minutes or less'),
    );
    expect(alarmsOf(stack)['ExpiredLeases']).toMatchObject({ EvaluationPeriods: 1 });
  });
});

describe('what alarms read', () => {
  afterEach(() => vi.restoreAllMocks());

  it('is what the functions write: namespace, service, lane', () => {
    const written: string[] = [];
    vi.spyOn(process.stdout, 'write').mockImplementation((line) => written.push(String(line)) > 0);
    process.env['POWERTOOLS_SERVICE_NAME'] = 'orders-service';
    const telemetry = lambdaTelemetry();
    telemetry.count('OldestDueAgeSeconds', 7, 'orders');
    telemetry.flush();
    vi.restoreAllMocks();
    const blob = JSON.parse(written.join('')) as Record<string, unknown> & {
      _aws: {
        CloudWatchMetrics: { Namespace: string; Dimensions: string[][]; Metrics: { Name: string }[] }[];
      };
    };
    const alarm = alarmsOf(monitored().stack)['OldestDueAgeorders'];
    expect(blob._aws.CloudWatchMetrics).toMatchObject([
      { Namespace: alarm?.Namespace, Metrics: [{ Name: alarm?.MetricName }] },
    ]);
    const dimensions = blob._aws.CloudWatchMetrics[0]?.Dimensions[0] ?? [];
    expect(dimensions.sort().map((Name) => ({ Name, Value: blob[Name] }))).toEqual(alarm?.Dimensions);
  });
});

describe('functions', () => {
  it.each(['Relay', 'Maintain', 'Ingestpaymentsservice', 'Handlerorderplaced'])(
    '%s has alarms on errors, throttles, duration and dropped recursion',
    (name) => {
      const alarms = alarmsOf(monitored().stack);
      expect(alarms[`${name}errors`]).toMatchObject({ MetricName: 'Errors', DatapointsToAlarm: 2 });
      expect(alarms[`${name}throttles`]).toMatchObject({ MetricName: 'Throttles', DatapointsToAlarm: 2 });
      expect(alarms[`${name}duration`]).toMatchObject({ MetricName: 'Duration', Statistic: 'Maximum' });
      expect(alarms[`${name}recursiondrops`]).toMatchObject({
        MetricName: 'RecursiveInvocationsDropped',
        EvaluationPeriods: 1,
      });
    },
  );

  it('that fill their time ring at the timeout, not before: they stop by themselves', () => {
    const alarms = alarmsOf(monitored().stack);
    expect(alarms['Relayduration']?.Threshold).toBe(59_500);
    expect(alarms['Handlerorderplacedduration']?.Threshold).toBe(29_500);
  });

  it('that come later are watched as those before', () => {
    const { stack, monitoring, fn, queue } = monitored();
    monitoring.addHandler({ name: 'Handler refund', function: fn('Refund', 10), messageType: 'refund' });
    monitoring.addDeadLetterQueue({ name: 'Async failures', queue: queue('Async') });
    const alarms = alarmsOf(stack);
    expect(alarms['OldestDueAgerefund']).toBeDefined();
    expect(alarms['Handlerrefunderrors']).toBeDefined();
    expect(alarms['Asyncfailuresnotempty']).toBeDefined();
    expect(bodyOf(stack)).toContain('Handler refund: invocations');
  });
});

describe('functions of the application', () => {
  it('can be watched too: a producer, and a consumer straight from its queue', () => {
    const { stack, monitoring, fn, queue } = monitored();
    monitoring.addFunction({ name: 'PlaceOrder', function: fn('PlaceOrder') });
    monitoring.addConsumer({
      name: 'Email',
      function: fn('Email'),
      queue: queue('Emails'),
      deadLetterQueue: queue('EmailsDead'),
    });
    const alarms = alarmsOf(stack);
    for (const id of ['PlaceOrdererrors', 'Emailerrors', 'Emailqueueage', 'Emaildeadlettersnotempty']) {
      expect(alarms[id], id).toBeDefined();
    }
    expect(bodyOf(stack)).toContain('Email: age');
  });
});

describe('queues and the database', () => {
  it('ring for one visible message in a dead-letter queue, moved there or sent', () => {
    expect(alarmsOf(monitored().stack)['Ingestpaymentsservicedeadlettersnotempty']).toMatchObject({
      MetricName: 'ApproximateNumberOfMessagesVisible',
      Statistic: 'Maximum',
      Threshold: 1,
      EvaluationPeriods: 1,
    });
  });

  it('ring for an inbox whose queue is not emptied', () => {
    expect(alarmsOf(monitored().stack)['Ingestpaymentsservicequeueage']).toMatchObject({
      MetricName: 'ApproximateAgeOfOldestMessage',
      Threshold: 300,
    });
  });

  it('ring at four fifths of the connections, where the limit is known, and are left alone where it is not', () => {
    expect(alarmsOf(monitored().stack)['Databaseconnections']).toMatchObject({
      Threshold: 80,
      EvaluationPeriods: 3,
    });
    expect(alarmsOf(monitored(() => ({ database: {} })).stack)['Databaseconnections']).toBeUndefined();
  });
});

describe('the dashboard', () => {
  it('shows the way of a message from left to right', () => {
    const widgets = widgetsOf(monitored().stack);
    const headings = widgets.filter(({ properties }) => properties.markdown?.startsWith('## '));
    expect(headings.map(({ x, properties }) => [x, properties.markdown])).toEqual([
      [0, '## Outbox →'],
      [6, '## Relay →'],
      [12, '## Queues, ingest →'],
      [18, '## Inbox, handlers'],
    ]);
    const flow = ['Added', 'Published', 'Ingested', 'Handled, ms'];
    expect(flow.map((title) => widgets.find(({ properties }) => properties.title === title)?.x)).toEqual([
      0, 6, 12, 18,
    ]);
  });

  it('has no widget over another', () => {
    const taken = new Map<string, unknown>();
    for (const { x, y, width, height, properties } of widgetsOf(monitored().stack)) {
      for (let column = x; column < x + width; column++) {
        for (let row = y; row < y + height; row++) {
          expect(taken.get(`${column},${row}`), properties.title).toBeUndefined();
          taken.set(`${column},${row}`, properties.title ?? properties.markdown);
        }
      }
    }
  });

  it('shows every alarm, those of later handlers too', () => {
    const { stack, monitoring, fn } = monitored();
    monitoring.addHandler({ name: 'Handler refund', function: fn('Refund', 10), messageType: 'refund' });
    const alarms = Object.keys(Template.fromStack(stack).findResources('AWS::CloudWatch::Alarm'));
    expect(widgetsOf(stack)[0]?.properties.alarms).toEqual(alarms);
  });

  it('has no graph without a metric, which CloudWatch refuses', () => {
    const { stack } = monitored(() => ({ destinations: [], ingests: [], handlers: [], database: {} }));
    const graphs = widgetsOf(stack).filter(
      ({ type, properties }) => type === 'metric' && properties.title !== 'Alarms',
    );
    for (const { properties } of graphs)
      expect(properties.metrics?.length, properties.title).toBeGreaterThan(0);
  });

  it('can be left out', () => {
    const { stack, monitoring } = monitored(() => ({ dashboard: false }));
    expect(monitoring.dashboard).toBeUndefined();
    Template.fromStack(stack).resourceCountIs('AWS::CloudWatch::Dashboard', 0);
  });
});

describe('on an emulator', () => {
  it('no alarm needs metric math or a query', () => {
    const alarms = alarmsOf(monitored(() => ({ expressions: false })).stack);
    expect(Object.values(alarms).filter(({ Metrics }) => Metrics !== undefined)).toEqual([]);
    expect(alarms['Relaynotrunning']).toMatchObject({
      MetricName: 'Invocations',
      TreatMissingData: 'breaching',
    });
  });
});

it('a service name with a quote is refused, since no query could carry it', () => {
  expect(() => monitored(() => ({ service: "o'brien" }))).toThrow(
    "service must have no quotes, and is o'brien",
  );
});
