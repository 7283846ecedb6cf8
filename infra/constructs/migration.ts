import { Duration, Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { Trigger } from 'aws-cdk-lib/triggers';
import { Construct } from 'constructs';
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

  /**
   * Updates a function only once the tables are up to date. Only the function itself waits: its security group may be
   * named by a rule of the database's, for which the migration waits in its turn.
   */
  before(fn: lambda.IFunction): void {
    const resource = fn.node.defaultChild;
    if (this.trigger && resource instanceof lambda.CfnFunction && Stack.of(fn) === Stack.of(this)) {
      resource.node.addDependency(this.trigger);
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
