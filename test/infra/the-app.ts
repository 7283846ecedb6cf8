import { readFileSync } from 'node:fs';
import { App } from 'aws-cdk-lib';
import { readSettings } from '../../infra/context.ts';
import { RelayboxStack } from '../../infra/stacks/relaybox-stack.ts';

/** Context of an existing database. */
export const existingDatabase = {
  'relaybox:database': 'existing',
  'relaybox:databaseHost': 'db.internal',
  'relaybox:databaseSecretArn': 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:app-AbCdEf',
  'relaybox:databaseMaxConnections': 200,
};

/** Context of an existing VPC, known by its ids. */
export const existingVpc = {
  'relaybox:vpcId': 'vpc-0123456789abcdef0',
  'relaybox:subnetIds': 'subnet-0123456789abcdef0,subnet-0123456789abcdef1',
  'relaybox:availabilityZones': 'a,b',
};

/** The repository's app, with the context of `cdk.json` and what a test changes in it. */
export function theApp(change: Readonly<Record<string, unknown>> = {}): RelayboxStack {
  const { context } = JSON.parse(readFileSync('cdk.json', 'utf8')) as { context: Record<string, unknown> };
  const app = new App({ context: { ...context, ...change } });
  return new RelayboxStack(app, 'Relaybox', { settings: readSettings(app.node) });
}
