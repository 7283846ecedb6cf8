import { Alarm, ComparisonOperator, type IMetric, type TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';

/** An alarm. Whether silence is good or bad is said by each one: there is no default for it that is right twice. */
export interface AlarmSpec {
  readonly metric: IMetric;
  /** @default 1 */
  readonly threshold?: number;
  /** True where too little is what rings. @default false at the threshold and above it rings */
  readonly below?: boolean;
  /** @default 1 */
  readonly periods?: number;
  /** Of the periods, so many must be bad. @default - all of them */
  readonly badPeriods?: number;
  readonly missingData: TreatMissingData;
  /** What is wrong, in a sentence. */
  readonly what: string;
  /** What to do first. */
  readonly todo: string;
  /** The heading's anchor in docs/operations.md. */
  readonly runbook: RunbookAnchor;
}

/** Headings of docs/operations.md, as anchors. */
export type RunbookAnchor =
  | 'oldest-due-message-too-old-oldestdueageseconds'
  | 'failed-messages-failedmessages'
  | 'blocked-keys-blockedkeys'
  | 'a-lane-is-open-openlanes'
  | 'a-type-without-a-handler-unhandledtypes'
  | 'leases-ran-out-expiredleases-lost-leases-lostleases'
  | 'poison-attempts-retried'
  | 'duplicates-that-differ-duplicatesthatdiffer'
  | 'hop-limit-hoplimit-wakehoplimit'
  | 'the-relay-is-not-running'
  | 'maintenance-is-not-running'
  | 'an-inboxs-queue-is-not-emptied'
  | 'the-dead-letter-queue-is-not-empty'
  | 'a-function-fails'
  | 'a-function-is-throttled'
  | 'a-function-runs-into-its-timeout'
  | 'invocations-were-dropped-as-recursive'
  | 'database-connections-near-the-limit';

/** What all alarms have in common. */
export interface AlarmContext {
  readonly topic: ITopic | undefined;
  readonly runbookUrl: string;
  /** The name to give to `--function`. */
  readonly maintainFunctionName: string;
}

/** Creates alarms with a description that a person can act on, and with the topic as their action. */
export class Alarms {
  /** All that were made, in that order. */
  readonly made: Alarm[] = [];
  readonly #scope: Construct;
  readonly #context: AlarmContext;

  constructor(scope: Construct, context: AlarmContext) {
    this.#scope = scope;
    this.#context = context;
  }

  add(id: string, spec: AlarmSpec): Alarm {
    const alarm = new Alarm(this.#scope, id, {
      metric: spec.metric,
      threshold: spec.threshold ?? 1,
      comparisonOperator: spec.below
        ? ComparisonOperator.LESS_THAN_THRESHOLD
        : ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: spec.periods ?? 1,
      datapointsToAlarm: spec.badPeriods ?? spec.periods ?? 1,
      treatMissingData: spec.missingData,
      alarmDescription: this.#description(spec),
    });
    const { topic } = this.#context;
    if (topic !== undefined) {
      alarm.addAlarmAction(new SnsAction(topic));
      alarm.addOkAction(new SnsAction(topic));
    }
    this.made.push(alarm);
    return alarm;
  }

  #description({ what, todo, runbook }: AlarmSpec): string {
    const { runbookUrl, maintainFunctionName } = this.#context;
    const command = `relaybox doctor --function ${maintainFunctionName}`;
    return `${what} ${todo} First look: ${command}. Runbook: ${runbookUrl}#${runbook}`;
  }
}
