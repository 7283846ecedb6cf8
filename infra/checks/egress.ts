import type { AwsService, DeploymentFacts, NetworkFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { props } from './props.ts';

const { pass, fail, unknown } = answers('egress');

type Vpc = Extract<NetworkFacts, { kind: 'vpc' }>;

/** The services, how people call them, and what calls them. */
const SERVICES: Readonly<Record<AwsService, { readonly name: string; readonly use: string }>> = {
  sqs: { name: 'SQS', use: 'to wake functions and to send to queues' },
  events: { name: 'EventBridge', use: 'to send to event buses' },
  secretsmanager: { name: 'Secrets Manager', use: "to read the database's password" },
};

/** The constant of the CDK that makes each endpoint. */
const CONSTANTS: Readonly<Record<AwsService, string>> = {
  sqs: 'SQS',
  events: 'EVENTBRIDGE',
  secretsmanager: 'SECRETS_MANAGER',
};

/** A function in a subnet without a way to a service hangs until its timeout, and its error names no network. */
export function checkEgress(facts: DeploymentFacts): Finding[] {
  const { network } = facts;
  switch (network.kind) {
    case 'public':
      return [pass('network', 'The functions are outside a VPC and reach every service')];
    case 'provided':
      return [pass('network', `The way to the services is vouched for (${props.egress})`)];
    case 'vpc':
      return [
        ...needed(facts).map((service) => check(network, service)),
        ...network.elsewhere.flatMap((place) => elsewhere(facts, network, place)),
      ];
  }
}

/** A function of the user's in subnets of its own wakes and logs in from there; it publishes nothing itself. */
function elsewhere(facts: DeploymentFacts, network: Vpc, place: Vpc['elsewhere'][number]): Finding[] {
  return needed(facts)
    .filter((service) => service !== 'events')
    .map((service) => check({ ...network, id: place.function, route: place.route }, service));
}

/** The services that these functions call. */
export function needed(facts: DeploymentFacts): AwsService[] {
  const services: AwsService[] = ['sqs'];
  if (facts.destinations.some(({ transport }) => transport === 'eventbridge')) services.push('events');
  if (facts.database.credentials === 'secret') services.push('secretsmanager');
  return services;
}

function check(network: Vpc, service: AwsService): Finding {
  const { name, use } = SERVICES[service];
  const { id, route, endpoints } = network;
  const endpoint = endpoints?.find((each) => each.service === service);
  if (endpoint?.privateDns === true) return pass(id, `${name} is reached by the VPC's endpoint`);
  if (route === 'nat') return pass(id, `${name} is reached by the route to a NAT`);
  const fix = `add an endpoint (vpc.addInterfaceEndpoint('${name.replaceAll(' ', '')}', { service: ec2.InterfaceVpcEndpointAwsService.${CONSTANTS[service]} })), or take subnets with a route to a NAT, or say ${props.egress} where the way is made elsewhere`;
  if (endpoint !== undefined && route !== undefined) {
    return endpoint.privateDns === false
      ? fail(
          id,
          `The endpoint for ${name} has no private DNS, and the functions' subnets have no route to a NAT: the SDK looks for the public name`,
          `set privateDnsEnabled: true on the endpoint, or say ${props.egress}`,
        )
      : unknown(id, `Whether the endpoint for ${name} has private DNS is not known`, props.egress);
  }
  if (route === undefined || endpoints === undefined) {
    return unknown(
      id,
      `Whether the functions reach ${name} (${use}) is not known: the ${route === undefined ? 'routes' : 'endpoints'} of the VPC are not revealed`,
      props.egress,
    );
  }
  const way =
    route === 'internet-gateway'
      ? "the functions' subnets are public, but a function has no public address, so that their internet gateway is of no use to it"
      : "the functions' subnets have no route out";
  return fail(id, `${name} (${use}) cannot be reached: the VPC has no endpoint for it, and ${way}`, fix);
}
