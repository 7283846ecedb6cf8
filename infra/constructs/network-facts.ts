import * as ec2 from 'aws-cdk-lib/aws-ec2';
import type { AwsService, EndpointFacts, NetworkFacts } from '../checks/facts.ts';
import type { Network } from './network.ts';

const SERVICES: readonly AwsService[] = ['sqs', 'events', 'secretsmanager'];

/** What is known of the way from the functions to AWS's services. */
export function networkFacts(network: Network, egress: 'provided' | undefined): NetworkFacts {
  if (egress === 'provided') return { kind: 'provided' };
  const { vpc, vpcSubnets } = network;
  if (vpc === undefined) return { kind: 'public' };
  return { kind: 'vpc', id: vpc.node.path, route: routeOf(vpc, vpcSubnets), endpoints: endpointsOf(vpc) };
}

/** The default route of the functions' subnets, where this app makes it. */
function routeOf(
  vpc: ec2.IVpc,
  selection: ec2.SubnetSelection | undefined,
): 'nat' | 'none' | 'internet-gateway' | undefined {
  if (!(vpc instanceof ec2.Vpc)) return undefined;
  const routes = vpc.selectSubnets(selection).subnets.map((subnet) => {
    const all = subnet.node.findAll().filter((child) => child instanceof ec2.CfnRoute);
    const first = all.find((route) => route.destinationCidrBlock === '0.0.0.0/0');
    if (first === undefined) return 'none';
    if (first.gatewayId !== undefined) return 'internet-gateway';
    return first.natGatewayId !== undefined || first.instanceId !== undefined ? 'nat' : undefined;
  });
  // One subnet without a way is enough for invocations that fail at random.
  for (const worst of ['internet-gateway', 'none', undefined] as const) {
    if (routes.includes(worst)) return worst;
  }
  return 'nat';
}

/** The interface endpoints that this app makes in the VPC; undefined where an imported VPC may have others. */
function endpointsOf(vpc: ec2.IVpc): readonly EndpointFacts[] | undefined {
  const made = vpc.node.root.node
    .findAll()
    .filter((child) => child instanceof ec2.CfnVPCEndpoint)
    .filter((endpoint) => endpoint.vpcId === vpc.vpcId && endpoint.vpcEndpointType === 'Interface');
  const facts = made.flatMap((endpoint): EndpointFacts[] => {
    const service = SERVICES.find((name) => isNamed(endpoint.serviceName, name));
    if (service === undefined) return [];
    const { privateDnsEnabled } = endpoint;
    return [{ service, privateDns: typeof privateDnsEnabled === 'boolean' ? privateDnsEnabled : undefined }];
  });
  return facts.length === 0 && !(vpc instanceof ec2.Vpc) ? undefined : facts;
}

/** `com.amazonaws.<region>.sqs`; where the region is a token, the CDK may write another one behind the name. */
function isNamed(serviceName: string | undefined, name: AwsService): boolean {
  return new RegExp(`\\.${name}(\\$\\{Token|$)`).test(serviceName ?? '');
}
