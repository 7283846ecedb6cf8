import { Token } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import type { AwsService, EndpointFacts, NetworkFacts, RouteFacts } from '../checks/facts.ts';
import type { Network } from './network.ts';

const SERVICES: readonly AwsService[] = ['sqs', 'events', 'secretsmanager'];

/** What is known of the way from the functions to AWS's services. */
export function networkFacts(
  { vpc, vpcSubnets }: Network,
  egress: 'provided' | undefined,
  functions: readonly lambda.IFunction[],
): NetworkFacts {
  if (egress === 'provided') return { kind: 'provided' };
  if (vpc === undefined) return { kind: 'public' };
  const route = vpc instanceof ec2.Vpc ? routeOf(vpc.selectSubnets(vpcSubnets).subnets) : undefined;
  const elsewhere = functions.flatMap((fn) => {
    const subnets = vpc instanceof ec2.Vpc ? subnetsOf(fn, vpc) : [];
    const own = { function: fn.node.path, route: routeOf(subnets) };
    return subnets.length === 0 || own.route === route ? [] : [own];
  });
  return { kind: 'vpc', id: vpc.node.path, route, elsewhere, endpoints: endpointsOf(vpc) };
}

/** A function's subnets, as far as they are this VPC's. */
function subnetsOf(fn: lambda.IFunction, vpc: ec2.Vpc): ec2.ISubnet[] {
  const resource = fn.node.defaultChild;
  if (!(resource instanceof lambda.CfnFunction)) return [];
  const { vpcConfig } = resource;
  if (vpcConfig === undefined || Token.isUnresolved(vpcConfig) || !('subnetIds' in vpcConfig)) return [];
  const ids = vpcConfig.subnetIds ?? [];
  const all = [...vpc.privateSubnets, ...vpc.isolatedSubnets, ...vpc.publicSubnets];
  return all.filter(({ subnetId }) => ids.includes(subnetId));
}

/** The default route of some subnets, where this app makes it. */
function routeOf(subnets: readonly ec2.ISubnet[]): RouteFacts {
  const routes = subnets.map((subnet) => {
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
