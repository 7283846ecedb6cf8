import { Annotations } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Code } from 'aws-cdk-lib/aws-lambda';
import { type ITopic, Topic } from 'aws-cdk-lib/aws-sns';
import { describe, expect, it, vi } from 'vitest';
import type { Relaybox, RelayboxProps } from '../../infra/index.ts';
import { part, relayboxIn, saidOf } from './checked-app.ts';
import { secured } from './secured-app.ts';
import { existingDatabase, theApp } from './the-app.ts';

// A synth takes a second, and many where other tests take the processor.
vi.setConfig({ testTimeout: 120_000 });

const { template: of, relaybox } = secured();
const template = of();
const functions = Object.entries(template.findResources('AWS::Lambda::Function')).filter(([id]) =>
  id.startsWith('Relaybox'),
);
const alarms = Object.values(template.findResources('AWS::CloudWatch::Alarm')).map(
  ({ Properties }) => Properties,
);
/** The dimensions of an alarm's metric, or of the metrics that it computes with. */
const watched = (metric: string): string =>
  JSON.stringify(
    alarms
      .flatMap(({ MetricName, Dimensions, Metrics = [] }) => [
        { MetricName, Dimensions },
        ...Metrics.map(({ MetricStat }: { MetricStat?: { Metric: object } }) => MetricStat?.Metric ?? {}),
      ])
      .filter(({ MetricName }) => MetricName === metric),
  );

describe('a Relaybox', () => {
  it.each(functions.filter(([id]) => !id.startsWith('RelayboxMigration')))('watches %s', (id) => {
    for (const metric of ['Errors', 'Throttles', 'Duration', 'RecursiveInvocationsDropped']) {
      expect(watched(metric)).toContain(`{"Ref":"${id}"}`);
    }
  });

  it('does not watch the migration, which fails the deployment', () => {
    expect(watched('Errors')).not.toContain('RelayboxMigration');
  });

  it('watches the dead-letter queue of each inbox, brought or made', () => {
    const visible = watched('ApproximateNumberOfMessagesVisible');
    expect(visible).toMatch(/"Dead[0-9A-F]{8}","QueueName"/);
    expect(visible).toMatch(/"RelayboxIngeststockserviceDeadLetterQueue[0-9A-F]{8}","QueueName"/);
  });

  it('reads the metrics of its own functions: one service name, in alarms and in each function', () => {
    const services = functions.map(([, { Properties }]) => Properties.Environment.Variables);
    for (const { POWERTOOLS_SERVICE_NAME, POWERTOOLS_METRICS_NAMESPACE } of services) {
      expect(POWERTOOLS_SERVICE_NAME).toBe(relaybox.serviceName);
      expect(POWERTOOLS_METRICS_NAMESPACE).toBe('Relaybox');
    }
    for (const lane of ['orders', 'events', 'order.placed', 'refunded']) {
      expect(watched('OldestDueAgeSeconds')).toContain(
        JSON.stringify([
          { Name: 'lane', Value: lane },
          { Name: 'service', Value: relaybox.serviceName },
        ]),
      );
    }
    const queries = alarms.filter(({ Metrics = [] }) => Metrics[0]?.Expression?.startsWith('SELECT'));
    expect(queries).toHaveLength(9);
    for (const { Metrics } of queries) {
      expect(Metrics[0].Expression).toContain(`service = '${relaybox.serviceName}'`);
    }
  });

  it('can leave all of it out', () => {
    const without = secured({ monitoring: { enabled: false } }).template();
    without.resourceCountIs('AWS::CloudWatch::Alarm', 0);
    without.resourceCountIs('AWS::CloudWatch::Dashboard', 0);
  });
});

describe('alarms that nobody hears', () => {
  const id = 'relaybox:no-alarm-topic';
  /** What is said against an app without an alarm topic, when a test has done something to it. */
  const said = (over: Partial<RelayboxProps>, then: (relaybox: Relaybox) => void = () => {}): string => {
    const parts = part();
    then(relayboxIn(parts, over));
    return saidOf(parts);
  };

  it('are said at synth, where there is no topic', () => {
    expect(said({ monitoring: {} })).toContain('when one rings, nobody is told. Set alarmTopic');
  });

  it('are not, where there is a topic, or there are no alarms', () => {
    const parts = part();
    const alarmTopic = new Topic(parts.stack, 'Alarms') as ITopic;
    relayboxIn(parts, { monitoring: {}, alarmTopic });
    expect(saidOf(parts)).toBe('');
    expect(said({ monitoring: { enabled: false } })).toBe('');
  });

  it('are answered for by their id', () => {
    const acknowledge = (relaybox: Relaybox) =>
      Annotations.of(relaybox).acknowledgeWarning(id, 'the operations team reads the dashboard');
    expect(said({ monitoring: {} }, acknowledge)).toBe('');
  });

  it("are said of the ready app too, until somebody is subscribed to the app's own topic", () => {
    const warning = 'relaybox:no-alarm-subscriber';
    const of = (context: Record<string, unknown>) => saidOf({ stack: theApp(context) });
    expect(of(existingDatabase)).toContain(warning);
    expect(of({ ...existingDatabase, 'relaybox:alarmEmail': 'oncall@example.com' })).not.toContain(warning);
  });
});

describe('an operator', () => {
  it('wakes by a decision the relay and every handler, both of a type that two consumers handle', () => {
    const { relaybox, stack } = secured();
    relaybox.addHandler('OrderPlacedEmails', {
      messageType: 'order.placed',
      consumer: 'emails',
      code: Code.fromInline('exports.handler = () => undefined;'),
    });
    const maintain = Object.entries(Template.fromStack(stack).findResources('AWS::Lambda::Function'))
      .filter(([id]) => id.startsWith('RelayboxMaintain'))
      .map(([, { Properties }]) => Properties.Environment.Variables);
    const [variables] = maintain;
    expect(variables.RELAYBOX_WAKE_QUEUE_URL).toEqual({
      Ref: expect.stringMatching(/^RelayboxRelayWakeQueue/),
    });
    const urls = variables.RELAYBOX_INBOX_WAKE_QUEUE_URLS['Fn::Join'][1] as unknown[];
    const text = urls.map((part) => (typeof part === 'string' ? part : 'url')).join('');
    expect(JSON.parse(text)).toEqual({
      'order.placed': 'url',
      refunded: 'url',
      'emails/order.placed': 'url',
    });
  });
});
