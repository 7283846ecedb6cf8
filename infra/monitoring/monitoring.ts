import { Annotations, Duration } from 'aws-cdk-lib';
import { Dashboard, Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { Construct } from 'constructs';
import { Alarms } from './alarms.ts';
import { dashboardRows } from './dashboard.ts';
import { alarmOnFunction, alarmOnNotRunning } from './function-alarms.ts';
import { handlerLane } from './lane.ts';
import { alarmOnAge, alarmOnLanes, type LaneAlarms } from './lane-alarms.ts';
import { RelayboxMetrics, wholeMinutes } from './metrics.ts';
import type {
  ConsumerPart,
  DeadLetterQueuePart,
  FunctionPart,
  HandlerPart,
  IngestPart,
  MonitoringParts,
} from './parts.ts';

/** Share of the database's connections from which on one should act. */
const CONNECTIONS_SHARE = 0.8;

/** Alarms on queries see so much of the past, and no more. */
const QUERY_HOURS = 3;

/** Where the runbook stands in the package. */
const RUNBOOK = 'relaybox/docs/operations.md';

/** Alarms that ring for what a person must do something about, and a dashboard with the flow from left to right. */
export class Monitoring extends Construct {
  /** @default - none where the parts say so */
  readonly dashboard: Dashboard | undefined;
  readonly #parts: MonitoringParts;
  readonly #alarms: Alarms;
  readonly #lanes: LaneAlarms;
  readonly #age: Duration;
  readonly #expressions: boolean;
  readonly #consumers: ConsumerPart[] = [];
  readonly #handlers: HandlerPart[] = [];
  readonly #deadLetterQueues: DeadLetterQueuePart[] = [];

  constructor(scope: Construct, id: string, parts: MonitoringParts) {
    super(scope, id);
    this.#parts = parts;
    this.#expressions = parts.expressions ?? true;
    this.#alarms = new Alarms(this, {
      topic: parts.alarmTopic,
      runbookUrl: parts.runbookUrl ?? RUNBOOK,
      maintainFunctionName: parts.maintain.function.functionName,
    });
    this.#lanes = {
      alarms: this.#alarms,
      metrics: new RelayboxMetrics(parts.service, parts.namespace),
      figuresPeriod: this.#figuresPeriod(parts.maintain.every),
    };
    this.#age = parts.oldestDueAge ?? wholeMinutes(Math.max(300, 2 * parts.relay.every.toSeconds()));
    this.#watchOwn();
    for (const ingest of parts.ingests ?? []) this.addIngest(ingest);
    for (const handler of parts.handlers ?? []) this.addHandler(handler);
    for (const queue of parts.deadLetterQueues ?? []) this.addDeadLetterQueue(queue);
    this.dashboard = parts.dashboard === false ? undefined : this.createDashboard();
  }

  /** Watches a function: errors, throttles, a duration near its timeout, drops by recursion detection. */
  addFunction(part: FunctionPart): void {
    alarmOnFunction(this.#alarms, part);
  }

  /** Watches an inbox: its function, its queue, its dead-letter queue. */
  addIngest(part: IngestPart): void {
    this.addConsumer(part);
  }

  /** Watches a consumer straight from its queue: its function, its queue, its dead-letter queue. */
  addConsumer(part: ConsumerPart): void {
    this.#consumers.push(part);
    this.addFunction(part);
    this.#alarms.add(`${part.name} queue age`, {
      metric: part.queue.metricApproximateAgeOfOldestMessage({
        period: Duration.minutes(5),
        statistic: Stats.MAXIMUM,
      }),
      threshold: this.#age.toSeconds(),
      // A queue that nobody uses for hours reports nothing.
      missingData: TreatMissingData.NOT_BREACHING,
      what: `${part.name}: its queue has held a message for ${this.#age.toHumanString()} or longer.`,
      todo: "See the function's errors and throttles, and whether its event source is on.",
      runbook: 'an-inboxs-queue-is-not-emptied',
    });
    if (part.deadLetterQueue !== undefined) {
      this.addDeadLetterQueue({ name: `${part.name} dead letters`, queue: part.deadLetterQueue });
    }
  }

  /** Watches a handler: its function, and its lane. */
  addHandler(part: HandlerPart): void {
    this.#handlers.push(part);
    this.addFunction(part);
    alarmOnAge(this.#lanes, handlerLane(part), this.#age);
  }

  /** Watches a dead-letter queue. */
  addDeadLetterQueue(part: DeadLetterQueuePart): void {
    this.#deadLetterQueues.push(part);
    this.#alarms.add(`${part.name} not empty`, {
      // What is visible, not what was sent: a redrive's moves are not counted as sent.
      metric: part.queue.metricApproximateNumberOfMessagesVisible({
        period: Duration.minutes(5),
        statistic: Stats.MAXIMUM,
      }),
      missingData: TreatMissingData.NOT_BREACHING,
      what: `${part.name}: there are messages that nothing could store or take.`,
      todo: 'Find out why (database down for long, a body beyond all limits), then redrive the queue.',
      runbook: 'the-dead-letter-queue-is-not-empty',
    });
  }

  /** Creates the dashboard. To override where it should have other rows. */
  protected createDashboard(): Dashboard {
    return new Dashboard(this, 'Dashboard', {
      defaultInterval: Duration.hours(3),
      widgets: dashboardRows({
        parts: this.#parts,
        metrics: this.#lanes.metrics,
        alarms: this.#alarms.made,
        consumers: this.#consumers,
        handlers: this.#handlers,
        deadLetterQueues: this.#deadLetterQueues,
      }),
    });
  }

  /** Two cycles of maintenance, so that no period is without figures. */
  #figuresPeriod(every: Duration): Duration {
    const seconds = Math.max(300, 2 * every.toSeconds());
    if (seconds <= QUERY_HOURS * 3600) return wholeMinutes(seconds);
    Annotations.of(this).addWarningV2(
      'relaybox:sparse-figures',
      `Maintenance runs every ${every.toHumanString()}, and alarms over all lanes see the last ${QUERY_HOURS} hours only: they may miss what goes wrong. Set its interval to 90 minutes or less.`,
    );
    return Duration.hours(QUERY_HOURS);
  }

  #watchOwn(): void {
    const { relay, maintain, destinations } = this.#parts;
    alarmOnNotRunning(this.#alarms, relay, this.#expressions, {
      what: 'The relay has not run with success: nothing is published.',
      todo: "See its schedule, its reserved concurrency and its log. After a first deployment it may ring until the first sweep's end.",
      runbook: 'the-relay-is-not-running',
    });
    alarmOnNotRunning(this.#alarms, maintain, this.#expressions, {
      what: 'Maintenance has not run with success: there are no figures, so the alarms of lanes are blind, and nothing is removed.',
      todo: 'See its schedule and its log.',
      runbook: 'maintenance-is-not-running',
    });
    this.addFunction(relay);
    this.addFunction(maintain);
    for (const { name } of destinations) alarmOnAge(this.#lanes, name, this.#age);
    if (this.#expressions) alarmOnLanes(this.#lanes);
    this.#watchDatabase();
  }

  #watchDatabase(): void {
    const { connections, maxConnections } = this.#parts.database ?? {};
    if (connections === undefined || maxConnections === undefined) return;
    const threshold = Math.floor(maxConnections * CONNECTIONS_SHARE);
    this.#alarms.add('Database connections', {
      metric: connections,
      threshold,
      periods: 3,
      missingData: TreatMissingData.NOT_BREACHING,
      what: `The database has ${threshold} connections of ${maxConnections} or more: soon it refuses new ones.`,
      todo: 'Find who holds them; lower concurrency or pools, or raise the limit.',
      runbook: 'database-connections-near-the-limit',
    });
  }
}
