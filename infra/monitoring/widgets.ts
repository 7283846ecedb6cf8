import { Duration } from 'aws-cdk-lib';
import {
  type Alarm,
  AlarmStatusWidget,
  ConcreteWidget,
  GraphWidget,
  type IMetric,
  type IWidget,
  Stats,
  TextWidget,
  TextWidgetBackground,
} from 'aws-cdk-lib/aws-cloudwatch';
import type { IQueue } from 'aws-cdk-lib/aws-sqs';
import { recursionDrops } from './metrics.ts';
import type { FunctionPart } from './parts.ts';

/** Four columns on CloudWatch's grid of 24. */
export const COLUMN_WIDTH = 6;
const GRAPH_HEIGHT = 6;
const period = Duration.minutes(5);

/** A graph whose metrics are asked for when the template is written: handlers are added until then. */
export class LateGraph extends ConcreteWidget {
  readonly #title: string;
  readonly #metrics: () => Axes;

  constructor(title: string, metrics: () => Axes, width = COLUMN_WIDTH) {
    super(width, GRAPH_HEIGHT);
    this.#title = title;
    this.#metrics = metrics;
  }

  override toJson(): ReturnType<ConcreteWidget['toJson']> {
    const { left, right = [] } = this.#metrics();
    const widget = left.length + right.length === 0 ? this.#empty() : this.#graph(left, right);
    widget.position(this.x ?? 0, this.y ?? 0);
    return widget.toJson();
  }

  #graph(left: readonly IMetric[], right: readonly IMetric[]): IWidget {
    return new GraphWidget({
      title: this.#title,
      width: this.width,
      height: this.height,
      left: [...left],
      right: [...right],
      leftYAxis: { min: 0 },
      rightYAxis: { min: 0 },
    });
  }

  // CloudWatch refuses a graph without a metric, and with it the whole dashboard.
  #empty(): IWidget {
    return new TextWidget({ markdown: `**${this.#title}**\n\nnone`, width: this.width, height: this.height });
  }
}

/** The state of all alarms; the list grows until the template is written. */
export class LateAlarms extends ConcreteWidget {
  readonly #alarms: readonly Alarm[];

  constructor(alarms: readonly Alarm[]) {
    super(24, 4);
    this.#alarms = alarms;
  }

  override toJson(): ReturnType<ConcreteWidget['toJson']> {
    const { width, height } = this;
    const widget = new AlarmStatusWidget({ title: 'Alarms', alarms: [...this.#alarms], width, height });
    widget.position(this.x ?? 0, this.y ?? 0);
    return widget.toJson();
  }
}

/** What a graph shows against its two axes. */
export interface Axes {
  readonly left: readonly IMetric[];
  /** @default - nothing */
  readonly right?: readonly IMetric[];
}

/** A column's heading. */
export function heading(text: string): IWidget {
  return new TextWidget({
    markdown: `## ${text}`,
    width: COLUMN_WIDTH,
    height: 1,
    background: TextWidgetBackground.TRANSPARENT,
  });
}

/** Runs and troubles of functions against the left axis, how long they take against the right. */
export function functionAxes(parts: readonly FunctionPart[]): Axes {
  const sum = { period, statistic: Stats.SUM };
  const named = (part: FunctionPart, what: string): { label: string } => ({
    label: parts.length === 1 ? what : `${part.name}: ${what}`,
  });
  return {
    left: parts.flatMap((part) => [
      part.function.metricInvocations({ ...sum, ...named(part, 'invocations') }),
      part.function.metricErrors({ ...sum, ...named(part, 'errors') }),
      part.function.metricThrottles({ ...sum, ...named(part, 'throttles') }),
      recursionDrops(part.function, period).with(named(part, 'recursion drops')),
    ]),
    right: parts.map((part) =>
      part.function.metricDuration({ period, statistic: Stats.p(99), ...named(part, 'p99 ms') }),
    ),
  };
}

/** Messages that can be received, and those that are being. */
export function queueLengths(
  queues: readonly { readonly name: string; readonly queue: IQueue }[],
): IMetric[] {
  const reading = { period, statistic: Stats.MAXIMUM };
  return queues.flatMap(({ name, queue }) => [
    queue.metricApproximateNumberOfMessagesVisible({ ...reading, label: `${name}: visible` }),
    queue.metricApproximateNumberOfMessagesNotVisible({ ...reading, label: `${name}: in flight` }),
  ]);
}
