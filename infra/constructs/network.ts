import * as ec2 from 'aws-cdk-lib/aws-ec2';
import { Construct } from 'constructs';
import type { Database } from './database.ts';

/** Where the functions run. */
export interface NetworkProps {
  readonly database: Database;
  /** @default - the database's; none where the database has none, so that functions run outside of any VPC */
  readonly vpc?: ec2.IVpc;
  /** @default - private subnets with a way out, where the VPC has some, else the isolated ones */
  readonly vpcSubnets?: ec2.SubnetSelection;
  /** Of all functions. @default - one is made: out to the database's port and to HTTPS, nothing in */
  readonly securityGroups?: ec2.ISecurityGroup[];
}

/** The functions' place in the VPC and their way to the database, port by port. */
export class Network extends Construct {
  readonly vpc: ec2.IVpc | undefined;
  readonly vpcSubnets: ec2.SubnetSelection | undefined;
  readonly securityGroups: ec2.ISecurityGroup[];
  readonly #database: Database;

  constructor(scope: Construct, id: string, props: NetworkProps) {
    super(scope, id);
    this.#database = props.database;
    this.vpc = props.vpc ?? props.database.vpc;
    this.vpcSubnets = this.vpc && (props.vpcSubnets ?? privateSubnets(this.vpc));
    this.securityGroups = this.vpc ? (props.securityGroups ?? [this.createSecurityGroup(this.vpc)]) : [];
    for (const group of this.securityGroups) this.allowToDatabase(group);
  }

  /** What a function's props take of it. */
  get placement(): {
    readonly vpc?: ec2.IVpc;
    readonly vpcSubnets?: ec2.SubnetSelection;
    readonly securityGroups?: ec2.ISecurityGroup[];
  } {
    if (this.vpc === undefined || this.vpcSubnets === undefined) return {};
    return { vpc: this.vpc, vpcSubnets: this.vpcSubnets, securityGroups: this.securityGroups };
  }

  /** Lets these reach the database: the rule on its side, and on theirs where they need one. */
  allowToDatabase(client: ec2.IConnectable): void {
    this.#database.allowFrom(client, ec2.Port.tcp(this.#database.port));
  }

  protected createSecurityGroup(vpc: ec2.IVpc): ec2.SecurityGroup {
    const group = new ec2.SecurityGroup(this, 'SecurityGroup', {
      vpc,
      description: 'Functions of Relaybox: to the database and to AWS services',
      allowAllOutbound: false,
    });
    group.addEgressRule(ec2.Peer.anyIpv4(), ec2.Port.HTTPS, 'AWS services, by endpoint or NAT');
    return group;
  }
}

function privateSubnets(vpc: ec2.IVpc): ec2.SubnetSelection {
  if (vpc.privateSubnets.length > 0) return { subnetType: ec2.SubnetType.PRIVATE_WITH_EGRESS };
  if (vpc.isolatedSubnets.length > 0) return { subnetType: ec2.SubnetType.PRIVATE_ISOLATED };
  throw new Error(
    `${vpc.node.path} has no private subnet: a function in a public one reaches nothing outside. Say vpcSubnets`,
  );
}
