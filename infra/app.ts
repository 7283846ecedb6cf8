import { App } from 'aws-cdk-lib';
import { readSettings } from './context.ts';
import { RelayboxStack } from './stacks/relaybox-stack.ts';

/** The app of `cdk.json`. Where it is deployed to is the credentials' affair; an existing VPC that is looked up needs to know. */
const app = new App();
const settings = readSettings(app.node);
const account = process.env['CDK_DEFAULT_ACCOUNT'];
const region = process.env['CDK_DEFAULT_REGION'];
const looksUp = settings.network.vpcId !== undefined && settings.network.subnetIds === undefined;

new RelayboxStack(app, settings.stackName, {
  settings,
  ...(looksUp && account !== undefined && region !== undefined && { env: { account, region } }),
});
