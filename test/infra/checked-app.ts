import {
  App,
  Duration,
  aws_ec2 as ec2,
  Stack,
  aws_secretsmanager as secrets,
  aws_sqs as sqs,
} from 'aws-cdk-lib';
import { Annotations, Match } from 'aws-cdk-lib/assertions';
import { Database, Relaybox, type RelayboxProps } from '../../infra/index.ts';

// The CDK's classes don't fit its own interfaces under `exactOptionalPropertyTypes`: hence the `as`.

/** What a test's app is made in. */
export interface Parts {
  readonly stack: Stack;
  readonly vpc: ec2.IVpc;
  readonly database: Database;
}

/** A stack with a VPC that has a NAT, and a database of t4g.micro's size. */
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
export function saidOf({ stack }: Pick<Parts, 'stack'>): string {
  try {
    return Annotations.fromStack(stack)
      .findWarning('*', Match.anyValue())
      .map(({ entry }) => String(entry.data))
      .join('\n');
  } catch (error) {
    return String(error);
  }
}

/** An inbox's queue of the user's own. */
export function queue({ stack }: Parts, props: sqs.QueueProps = {}, maxReceiveCount = 5): sqs.Queue {
  const fifo = props.fifo ? { fifo: true } : {};
  const dead = new sqs.Queue(stack, 'Dead', { retentionPeriod: Duration.days(14), ...fifo });
  return new sqs.Queue(stack, 'Incoming', {
    visibilityTimeout: Duration.seconds(180),
    deadLetterQueue: { queue: dead, maxReceiveCount },
    ...props,
  });
}

/** A VPC without a way out. */
export function isolated({ stack }: Parts): ec2.Vpc {
  return new ec2.Vpc(stack, 'Isolated', {
    natGateways: 0,
    subnetConfiguration: [{ name: 'isolated', subnetType: ec2.SubnetType.PRIVATE_ISOLATED }],
  });
}

/** A VPC of somebody else's. */
export function imported({ stack }: Parts): ec2.IVpc {
  return ec2.Vpc.fromVpcAttributes(stack, 'Theirs', {
    vpcId: 'vpc-0123456789abcdef0',
    availabilityZones: ['eu-west-1a', 'eu-west-1b'],
    privateSubnetIds: ['subnet-0123456789abcdef0', 'subnet-0123456789abcdef1'],
    privateSubnetRouteTableIds: ['rtb-0123456789abcdef0', 'rtb-0123456789abcdef1'],
  });
}

/** Inboxes with just this queue. */
export function inbox(of: sqs.IQueue) {
  return { inboxes: [{ source: 'payments-service', queue: of }] };
}
