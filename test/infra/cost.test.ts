import { readFileSync } from 'node:fs';
import { App } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, test, vi } from 'vitest';
import { readSettings } from '../../infra/context.ts';
import { type IdleAssumptions, idleCost, type Resources } from '../../infra/cost/idle.ts';
import { messagesCost } from '../../infra/cost/messages.ts';
import { instanceHours, prices } from '../../infra/cost/prices.ts';
import { costTable, money, priceText, totalOf } from '../../infra/cost/table.ts';
import { RelayboxStack } from '../../infra/stacks/relaybox-stack.ts';
import { inline } from './inline.ts';

// Costs are of what the functions are, not of what is in them.
vi.mock('../../infra/constructs/bundles.ts', async () => {
  const { inline } = await import('./inline.ts');
  return { bundle: () => inline };
});

// The first synth of a process loads the CDK's rules.
vi.setConfig({ testTimeout: 90_000 });

const page = written(readFileSync(new URL('../../docs/cost.md', import.meta.url), 'utf8'));
const cdk = JSON.parse(readFileSync(new URL('../../cdk.json', import.meta.url), 'utf8')) as {
  context: Record<string, unknown>;
};

/** The app of this repository, with its own settings and these. */
function appWith(over: Record<string, unknown> = {}, add?: (stack: RelayboxStack) => void): Resources {
  const app = new App({ context: { ...cdk.context, ...over } });
  const stack = new RelayboxStack(app, 'Relaybox', { settings: readSettings(app.node) });
  add?.(stack);
  return (Template.fromStack(stack).toJSON() as { Resources: Resources }).Resources;
}

function idle(resources: Resources, over: Partial<IdleAssumptions> = {}) {
  return idleCost(resources, { destinations: 1, messageTypes: 0, ...over });
}

function addHandler({ relaybox }: RelayboxStack): void {
  relaybox.addHandler('OrderPlaced', { messageType: 'order.placed', code: inline });
}

function addConsumer({ relaybox }: RelayboxStack): void {
  relaybox.addConsumer('Emails', { code: inline });
}

describe('the documented costs are those of the app as it is', () => {
  test('its parts and their sum', () => {
    expect(page).toContain(written(costTable(idle(appWith()))));
  });

  test('what each setting and each addition changes', () => {
    const base = totalOf(idle(appWith()));
    const inbox = { 'relaybox:inboxes': '[{ "source": "payments-service" }]' };
    const changes: Record<string, number> = {
      'egress: nat': totalOf(idle(appWith({ 'relaybox:egress': 'nat' }))),
      'endpointZones: 2': totalOf(idle(appWith({ 'relaybox:endpointZones': 2 }))),
      'multiAz: false': totalOf(idle(appWith({ 'relaybox:multiAz': false }))),
      'sweepMinutes: 15': totalOf(idle(appWith({ 'relaybox:sweepMinutes': 15 }))),
      'one more destination': totalOf(idle(appWith(), { destinations: 2 })) + prices.alarmMonth.dollars,
      'one inbox': totalOf(idle(appWith(inbox))),
      'one consumer': totalOf(idle(appWith({}, addConsumer))),
      'one handler': totalOf(idle(appWith({}, addHandler), { messageTypes: 1 })),
    };
    const rows = Object.entries(changes).map(([what, dollars]) => [what, signed(dollars - base)] as const);
    expect(rows.filter((row) => !isRow(...row))).toEqual([]);
  });

  test('what a million messages cost', () => {
    for (const transport of ['eventbridge', 'sqs'] as const) {
      for (const together of [1, 10]) {
        const parts = messagesCost({ transport, together });
        const name = `${transport === 'sqs' ? 'SQS' : 'EventBridge'}, ${together === 1 ? 'each alone' : 'ten together'}`;
        expect(isRow(name, money(totalOf(parts))), `| ${name} | ${money(totalOf(parts))} |`).toBe(true);
      }
    }
    expect(page).toContain(written(costTable(messagesCost({ transport: 'eventbridge', together: 1 }))));
  });

  test('every price with its source', () => {
    const rows = [...Object.values(instanceHours), ...Object.values(prices)].map(
      ({ name, dollars, per, source }) => [name, priceText(dollars), per, source].join('|'),
    );
    expect(rows.filter((row) => !page.includes(`|${row}|`))).toEqual([]);
  });
});

describe('the estimate', () => {
  test('what has no price is left open, not left out', () => {
    const parts = idle(appWith({ 'relaybox:engine': 'sqlserver' }));
    expect(parts.find(({ name }) => name.startsWith('Database sqlserver-ex'))?.dollars).toBeUndefined();
    expect(costTable(parts)).toContain('| ? |');
  });

  test('a paused cluster that sweeps keep awake costs half a unit', () => {
    const cluster = {
      Type: 'AWS::RDS::DBCluster',
      Properties: { ServerlessV2ScalingConfiguration: { MinCapacity: 0, MaxCapacity: 4 } },
    };
    expect(idle({ cluster })[0]?.dollars).toBeCloseTo(43.8);
  });

  test('an alarm over metric math counts each metric', () => {
    const Metrics = [{ Expression: 'a - b' }, { MetricStat: {} }, { MetricStat: {} }];
    const parts = idle({ alarm: { Type: 'AWS::CloudWatch::Alarm', Properties: { Metrics } } });
    expect(parts.find(({ name }) => name === 'Alarms')?.dollars).toBeCloseTo(0.2);
  });
});

test('an alarm over all lanes counts each lane that has the metric, and one at least', () => {
  const query = (metric: string) => ({
    Type: 'AWS::CloudWatch::Alarm',
    Properties: { Metrics: [{ Expression: `SELECT MAX(${metric}) FROM SCHEMA("Relaybox", service, lane)` }] },
  });
  const of = (metric: string, destinations: number, messageTypes: number) =>
    idle({ alarm: query(metric) }, { destinations, messageTypes }).find(({ name }) => name === 'Alarms')
      ?.dollars;
  expect(of('FailedMessages', 2, 3)).toBeCloseTo(0.5);
  expect(of('OpenLanes', 2, 3)).toBeCloseTo(0.2);
  expect(of('UnhandledTypes', 2, 3)).toBeCloseTo(0.3);
  // Nothing writes it before it happens.
  expect(of('Retried', 2, 3)).toBeCloseTo(0.1);
});

/** A table without the spaces that a formatter pads its cells with. */
function written(text: string): string {
  return text.replaceAll(/ *\| */g, '|').replaceAll(/-{2,}/g, '--');
}

/** Whether a table has a row that begins so and has this figure. */
function isRow(name: string, figure: string): boolean {
  return new RegExp(`\\|${escaped(name)}\\|(?:[^|\\n]*\\|)?${escaped(figure)}\\|`).test(page);
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

function signed(dollars: number): string {
  return `${dollars < 0 ? '−' : '+'}${Math.abs(dollars).toFixed(2)}`;
}
