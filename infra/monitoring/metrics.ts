import { Duration } from 'aws-cdk-lib';
import { type IMetric, MathExpression, Metric, SearchExpression, Stats } from 'aws-cdk-lib/aws-cloudwatch';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import type { MetricName } from '../../shared/delivery/telemetry.ts';

/** How a metric is read: over which time, and by which statistic. */
export interface Reading {
  readonly period: Duration;
  readonly statistic: string;
}

/**
 * The metrics that the functions write, as alarms and widgets read them. Namespace, dimensions and names are those of
 * `shared/lambda/telemetry.ts`; names are its type, so that a metric that nothing writes can't be asked for.
 */
export class RelayboxMetrics {
  readonly #namespace: string;
  readonly #service: string;

  constructor(service: string, namespace = 'Relaybox') {
    for (const [name, value] of Object.entries({ service, namespace })) {
      // Both stand quoted in queries, and CloudWatch has no way to write a quote there.
      if (/['"]/.test(value)) throw new Error(`${name} must have no quotes, and is ${value}`);
    }
    this.#namespace = namespace;
    this.#service = service;
  }

  /** A metric of one lane. */
  ofLane(metricName: MetricName, lane: string, reading: Reading): Metric {
    return new Metric({
      namespace: this.#namespace,
      metricName,
      dimensionsMap: { service: this.#service, lane },
      ...reading,
    });
  }

  /**
   * A metric over all lanes, one series for each, for alarms. A query, because it also finds lanes that no template
   * names: a type that nobody handles, a destination that somebody forgot to map.
   */
  ofLanes(metricName: MetricName, aggregate: 'MAX' | 'SUM', period: Duration): MathExpression {
    const schema = `SCHEMA("${this.#namespace}", service, lane)`;
    return new MathExpression({
      expression: `SELECT ${aggregate}(${metricName}) FROM ${schema} WHERE service = '${this.#service}' GROUP BY lane`,
      label: metricName,
      period,
    });
  }

  /** A metric over all lanes, for widgets: queries are charged by what they read, searches are not. */
  search(metricName: MetricName, { period, statistic }: Reading): SearchExpression {
    const schema = `{"${this.#namespace}",service,lane}`;
    return new SearchExpression({
      expression: `SEARCH('${schema} MetricName="${metricName}" service="${this.#service}"', '${statistic}', ${period.toSeconds()})`,
      label: `\${PROP('Dim.lane')}`,
      period,
    });
  }
}

/** Invocations that ended well; no figure at all where there was none. */
export function successes(fn: IFunction, period: Duration): IMetric {
  const reading = { period, statistic: Stats.SUM };
  return new MathExpression({
    expression: 'invocations - errors',
    usingMetrics: { invocations: fn.metricInvocations(reading), errors: fn.metricErrors(reading) },
    label: 'Successful invocations',
    period,
  });
}

/** Invocations that Lambda dropped because it took a chain of wakes for a loop. */
export function recursionDrops(fn: IFunction, period: Duration): Metric {
  return fn.metric('RecursiveInvocationsDropped', { period, statistic: Stats.SUM });
}

/** Rounded up to whole minutes, which is what an alarm's period must be. */
export function wholeMinutes(seconds: number): Duration {
  return Duration.minutes(Math.max(1, Math.ceil(seconds / 60)));
}
