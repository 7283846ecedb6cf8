import { Annotations, Fn } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as logs from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import type { NetworkSettings } from '../context.ts';

/** The VPC, new or existing, and the way from its private subnets to AWS's services. */
export class AppNetwork extends Construct {
  readonly vpc: ec2.IVpc;
  /** The functions' subnets. */
  readonly subnets: ec2.SubnetSelection;
  readonly #endpoints: ec2.SecurityGroup | undefined;

  constructor(scope: Construct, id: string, settings: NetworkSettings) {
    super(scope, id);
    this.vpc = settings.vpcId === undefined ? this.#create(settings) : this.#existing(settings);
    const egress = settings.vpcId === undefined && settings.egress === 'nat';
    this.subnets =
      settings.vpcId !== undefined || egress
        ? { subnetType: ec2.SubnetType.PRIVATE_WITH_EGRESS }
        : { subnetType: ec2.SubnetType.PRIVATE_ISOLATED };
    this.#endpoints = settings.egress === 'endpoints' ? this.#addEndpoints(settings) : undefined;
  }

  /** Lets these call AWS's services through the endpoints, where there are some. */
  letOut(groups: readonly ec2.ISecurityGroup[]): void {
    for (const group of groups) {
      this.#endpoints?.addIngressRule(group, ec2.Port.HTTPS, 'Functions of Relaybox');
    }
  }

  #create(settings: NetworkSettings): ec2.IVpc {
    const nat = settings.egress === 'nat';
    const isolated = { name: 'isolated', subnetType: ec2.SubnetType.PRIVATE_ISOLATED };
    const vpc = new ec2.Vpc(this, 'Vpc', {
      maxAzs: 2,
      natGateways: nat ? 1 : 0,
      subnetConfiguration: nat
        ? [
            { name: 'public', subnetType: ec2.SubnetType.PUBLIC, mapPublicIpOnLaunch: false },
            { name: 'private', subnetType: ec2.SubnetType.PRIVATE_WITH_EGRESS },
            isolated,
          ]
        : [isolated],
    });
    const logGroup = new logs.LogGroup(this, 'RejectedTraffic', { retention: logs.RetentionDays.ONE_MONTH });
    // What was let through would cost by the gigabyte; what was not is what one looks for.
    vpc.addFlowLog('Rejected', {
      trafficType: ec2.FlowLogTrafficType.REJECT,
      destination: ec2.FlowLogDestination.toCloudWatchLogs(logGroup),
    });
    // The CDK's own classes don't fit its interfaces where optional properties are exact.
    return vpc as ec2.IVpc;
  }

  #existing({ vpcId, subnetIds, availabilityZones }: NetworkSettings): ec2.IVpc {
    if (subnetIds === undefined) return ec2.Vpc.fromLookup(this, 'Vpc', { vpcId: vpcId ?? '' });
    // Known by its ids alone, so that a synth needs no credentials. Names of zones are of no consequence to functions.
    const zones = availabilityZones ?? subnetIds.map((_, index) => Fn.select(index % 2, Fn.getAzs()));
    const vpc = ec2.Vpc.fromVpcAttributes(this, 'Vpc', {
      vpcId: vpcId ?? '',
      availabilityZones: [...zones],
      privateSubnetIds: [...subnetIds],
    });
    for (const subnet of vpc.privateSubnets) {
      const id = '@aws-cdk/aws-ec2:noSubnetRouteTableId';
      Annotations.of(subnet).acknowledgeWarning(id, 'No route is added to it, so its table is of no concern');
    }
    return vpc;
  }

  /** The services that the functions call. Two zones of one endpoint cost twice one. */
  #addEndpoints({ endpointZones }: NetworkSettings): ec2.SecurityGroup {
    const services = {
      Sqs: ec2.InterfaceVpcEndpointAwsService.SQS,
      EventBridge: ec2.InterfaceVpcEndpointAwsService.EVENTBRIDGE,
      SecretsManager: ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER,
    };
    const { subnets } = this.vpc.selectSubnets(this.subnets);
    const securityGroup = new ec2.SecurityGroup(this, 'Endpoints', {
      vpc: this.vpc,
      description: 'Endpoints of AWS services, for the functions in this VPC',
      allowAllOutbound: false,
    });
    for (const [name, service] of Object.entries(services)) {
      this.vpc.addInterfaceEndpoint(name, {
        service,
        subnets: { subnets: subnets.slice(0, endpointZones) },
        securityGroups: [securityGroup],
        open: false,
        privateDnsEnabled: true,
      });
    }
    return securityGroup;
  }
}
