import { Duration } from 'aws-cdk-lib';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import { Trigger } from 'aws-cdk-lib/triggers';
import { Construct, type IConstruct } from 'constructs';
import { bundle } from './bundles.ts';
import type { Database } from './database.ts';
import type { Engine } from './engine.ts';
import { type Common, OwnFunction } from './own-function.ts';

/** How the tables are brought up to date. */
export interface MigrationOptions {
  /**
   * False where the tables are migrated by hand (`relaybox migrate`); the functions then say what is missing.
   * @default true
   */
  readonly atDeploy?: boolean;
  /** Also the time that a deployment waits. @default Duration.minutes(5) */
  readonly timeout?: Duration;
}

/** The migration's parts. */
export interface MigrationProps extends MigrationOptions {
  readonly common: Common;
  readonly engine: Engine;
  readonly database: Database;
  /** `RELAYBOX_DATABASE`, with the login that may change tables. */
  readonly databaseSettings: string;
}

/**
 * The tables' migration. A deployment runs it when its bundle, and so the migrations, or its settings have changed; the
 * functions are updated after it. Where it fails, the deployment rolls back with the database's own error.
 */
export class Migration extends Construct {
  readonly function: lambda.Function;
  readonly trigger: Trigger | undefined;
  readonly timeout: Duration;

  constructor(scope: Construct, id: string, props: MigrationProps) {
    super(scope, id);
    this.timeout = props.timeout ?? Duration.minutes(5);
    this.function = this.createFunction(props);
    this.trigger = props.atDeploy === false ? undefined : this.createTrigger();
    this.trigger?.node.addDependency(props.common.network, ...props.database.dependencies);
  }

  /** Updates these only once the tables are up to date. */
  before(...constructs: IConstruct[]): void {
    for (const construct of constructs) {
      if (this.trigger) construct.node.addDependency(this.trigger);
    }
  }

  protected createTrigger(): Trigger {
    return new Trigger(this, 'Trigger', { handler: this.function, timeout: this.timeout });
  }

  protected createFunction(props: MigrationProps): lambda.Function {
    return new OwnFunction(this, 'Function', {
      common: props.common,
      code: bundle(props.engine, 'migrate'),
      description: 'Relaybox: brings the tables to this version',
      memorySize: 256,
      timeout: this.timeout,
      environment: { RELAYBOX_DATABASE: props.databaseSettings },
    });
  }
}
