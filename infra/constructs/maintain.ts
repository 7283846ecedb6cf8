import { Duration } from 'aws-cdk-lib';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { defaults } from '../../shared/delivery/defaults.ts';
import { bundle } from './bundles.ts';
import type { Engine } from './engine.ts';
import { type Common, OwnFunction } from './own-function.ts';
import { Sweep } from './sweep.ts';

/** How maintenance works. */
export interface MaintainOptions {
  /** How often it cleans and counts. The alarms on age and backlog are as fresh as this. @default Duration.minutes(1) */
  readonly interval?: Duration;
  /** How long published rows are kept. @default Duration.days(7) */
  readonly outboxRetention?: Duration;
  /**
   * How long handled rows are kept, by which a repeated delivery is known. Longer than the longest redelivery that the
   * queues allow. @default Duration.days(30)
   */
  readonly inboxRetention?: Duration;
  /** The same, for what consumers straight from a queue have handled. @default Duration.days(30) */
  readonly receiptRetention?: Duration;
  /** @default Duration.seconds(60) */
  readonly timeout?: Duration;
  /** Megabytes. @default 256 */
  readonly memorySize?: number;
}

/** Maintenance's parts. */
export interface MaintainProps extends MaintainOptions {
  readonly common: Common;
  readonly engine: Engine;
}

/** Retention and figures on a schedule; operators' commands when it is asked one. */
export class Maintain extends Construct {
  readonly function: lambda.Function;
  readonly sweep: Sweep;
  readonly timeout: Duration;
  readonly inboxRetentionDays: number;
  readonly receiptRetentionDays: number;

  constructor(scope: Construct, id: string, props: MaintainProps) {
    super(scope, id);
    this.timeout = props.timeout ?? Duration.seconds(60);
    this.inboxRetentionDays = props.inboxRetention?.toDays() ?? defaults.inboxRetentionDays;
    this.receiptRetentionDays = props.receiptRetention?.toDays() ?? defaults.inboxRetentionDays;
    this.function = this.createFunction(props);
    this.sweep = new Sweep(this, 'Sweep', {
      function: this.function,
      interval: props.interval ?? Duration.minutes(1),
      description: 'Removes what is past its retention, and counts what waits',
    });
  }

  protected createFunction(props: MaintainProps): lambda.Function {
    const outboxDays = props.outboxRetention?.toDays();
    return new OwnFunction(this, 'Function', {
      common: props.common,
      code: bundle(props.engine, 'maintain'),
      description: 'Relaybox: retention and figures; answers relaybox … --function',
      memorySize: props.memorySize ?? 256,
      timeout: this.timeout,
      environment: {
        ...(outboxDays !== undefined && { RELAYBOX_OUTBOX_RETENTION_DAYS: `${outboxDays}` }),
        ...(props.inboxRetention && { RELAYBOX_INBOX_RETENTION_DAYS: `${this.inboxRetentionDays}` }),
        ...(props.receiptRetention && { RELAYBOX_RECEIPT_RETENTION_DAYS: `${this.receiptRetentionDays}` }),
      },
    });
  }
}
