import { App, aws_ec2 as ec2, Stack, aws_secretsmanager as secrets } from 'aws-cdk-lib';
import { Annotations, Match } from 'aws-cdk-lib/assertions';
import { Database, Relaybox, type RelayboxProps } from '../../infra/index.ts';

// The CDK's classes don't fit its own interfaces under `exactOptionalPropertyTypes`: hence the `as`.

/** What a test's app is made in. */
export interface Parts {
  readonly stack: Stack;
  readonly vpc: ec2.IVpc;
  readonly database: Database;
}

export function part(): Parts {
  const stack = new Stack(new App(), 'App');
  const vpc = new ec2.Vpc(stack, 'Vpc', { natGateways: 1, maxAzs: 2 }) as ec2.IVpc;
  const secret = new secrets.Secret(stack, 'Secret') as secrets.ISecret;
  const database = Database.fromSecret(secret, {
    databaseName: 'app',
    hostname: 'db.internal',
    maxConnections: 84,
    vpc,
  });
  return { stack, vpc, database };
}

/** A Relaybox that passes every check, changed as a test wants it. */
export function relayboxIn(parts: Parts, over: Partial<RelayboxProps> = {}): Relaybox {
  return new Relaybox(parts.stack, 'Relaybox', {
    source: 'orders-service',
    database: parts.database,
    inboxes: [{ source: 'payments-service' }],
    monitoring: { enabled: false },
    ...over,
  });
}

/** What the synth says against it: the error that ends it, or the warning that goes with it. */
export function saidOf({ stack }: Parts): string {
  try {
    return Annotations.fromStack(stack)
      .findWarning('*', Match.anyValue())
      .map(({ entry }) => String(entry.data))
      .join('\n');
  } catch (error) {
    return String(error);
  }
}
