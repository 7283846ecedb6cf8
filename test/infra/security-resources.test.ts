import { describe, expect, it } from 'vitest';
import { secured } from './secured-app.ts';

const template = secured().template();
const resources = (type: string): [string, Record<string, unknown>][] =>
  Object.entries(template.findResources(type))
    .map(([id, { Properties }]): [string, Record<string, unknown>] => [id, Properties])
    .filter(([id]) => id.startsWith('Relaybox'));
const functions = resources('AWS::Lambda::Function');

describe('queues', () => {
  const queues = resources('AWS::SQS::Queue');

  it.each(queues)('%s is encrypted, and takes no call without TLS', (id, { SqsManagedSseEnabled }) => {
    expect(SqsManagedSseEnabled).toBe(true);
    const policies = Object.values(template.findResources('AWS::SQS::QueuePolicy')).filter(({ Properties }) =>
      JSON.stringify(Properties.Queues).includes(`"${id}"`),
    );
    expect(policies.flatMap(({ Properties }) => Properties.PolicyDocument.Statement)).toContainEqual({
      Effect: 'Deny',
      Action: 'sqs:*',
      Principal: { AWS: '*' },
      Resource: { 'Fn::GetAtt': [id, 'Arn'] },
      Condition: { Bool: { 'aws:SecureTransport': 'false' } },
    });
  });

  it('are those of relay and handlers, and of the inbox and the consumer that brought none', () => {
    expect(queues.map(([id]) => id.replace(/[0-9A-F]{8}$/, ''))).toEqual([
      'RelayboxRelayWakeQueue',
      'RelayboxIngeststockserviceDeadLetterQueue',
      'RelayboxIngeststockserviceQueue',
      'RelayboxOrderPlacedWakeQueue',
      'RelayboxRefundedWakeQueue',
      'RelayboxEmailsDeadLetterQueue',
      'RelayboxEmailsQueue',
    ]);
  });
});

describe('functions', () => {
  it('are eight here', () => {
    expect(functions).toHaveLength(8);
  });

  it.each(functions)('%s keeps its log for a month, in a group of its own', (_, { LoggingConfig }) => {
    const { LogGroup } = LoggingConfig as { LogGroup: { Ref: string } };
    const groups = template.findResources('AWS::Logs::LogGroup');
    expect(groups[LogGroup.Ref]?.['Properties']).toMatchObject({ RetentionInDays: 30 });
  });

  it.each(functions)('%s is traced', (_, { TracingConfig }) => {
    expect(TracingConfig).toEqual({ Mode: 'Active' });
  });

  it.each(functions)('%s runs in the private subnets', (_, { VpcConfig }) => {
    const { SubnetIds } = VpcConfig as { SubnetIds: { Ref: string }[] };
    expect(SubnetIds).toHaveLength(2);
    for (const { Ref } of SubnetIds) expect(Ref).toMatch(/^VpcPrivateSubnet/);
  });

  it.each(functions)('%s knows where the secret is, and nothing of what is in it', (_, { Environment }) => {
    const text = JSON.stringify(Environment);
    expect(text).toMatch(/secretArn\W+\{"Ref":"ClusterSecretAttachment/);
    expect(text).not.toMatch(/resolve:|password/i);
    expect(text).not.toMatch(/"tls\W+false/);
  });

  it.each(functions)('%s is the newest Node on ARM', (_, { Runtime, Architectures }) => {
    expect(Runtime).toBe('nodejs24.x');
    expect(Architectures).toEqual(['arm64']);
  });
});

describe('security groups', () => {
  interface Rule {
    readonly IpProtocol: string;
    readonly FromPort?: unknown;
    readonly ToPort?: unknown;
    readonly CidrIp?: string;
    readonly GroupId?: { readonly 'Fn::GetAtt': readonly string[] };
    readonly SourceSecurityGroupId?: { readonly 'Fn::GetAtt': readonly string[] };
    readonly DestinationSecurityGroupId?: { readonly 'Fn::GetAtt': readonly string[] };
  }
  const rules = (type: string): Rule[] =>
    Object.values(template.findResources(type)).map(({ Properties }) => Properties as Rule);
  const nameOf = (group: Rule['GroupId']): string =>
    String(group?.['Fn::GetAtt'][0]).replace(/[0-9A-F]{8}$/, '');

  it('of the functions let nothing in, and out only to HTTPS and the database', () => {
    const [[id, group] = ['', {}]] = resources('AWS::EC2::SecurityGroup');
    expect(id).toMatch(/^RelayboxNetworkSecurityGroup/);
    expect(group['SecurityGroupIngress']).toBeUndefined();
    expect(group['SecurityGroupEgress']).toEqual([
      expect.objectContaining({ IpProtocol: 'tcp', FromPort: 443, ToPort: 443, CidrIp: '0.0.0.0/0' }),
    ]);
    const out = rules('AWS::EC2::SecurityGroupEgress').filter(({ GroupId }) =>
      nameOf(GroupId).startsWith('Relaybox'),
    );
    expect(
      out.map(({ IpProtocol, DestinationSecurityGroupId }) => [
        IpProtocol,
        nameOf(DestinationSecurityGroupId),
      ]),
    ).toEqual([['tcp', 'ClusterSecurityGroup']]);
  });

  it('of the database let in the functions and the producer, at its port', () => {
    const into = rules('AWS::EC2::SecurityGroupIngress').filter(
      ({ GroupId }) => nameOf(GroupId) === 'ClusterSecurityGroup',
    );
    expect(into.map(({ SourceSecurityGroupId }) => nameOf(SourceSecurityGroupId)).sort()).toEqual([
      'PlaceOrderSecurityGroup',
      'RelayboxNetworkSecurityGroup',
    ]);
    for (const { IpProtocol, FromPort, ToPort } of into) {
      expect(IpProtocol).toBe('tcp');
      expect(FromPort).toEqual({ 'Fn::GetAtt': [expect.stringMatching(/^Cluster/), 'Endpoint.Port'] });
      expect(ToPort).toEqual(FromPort);
    }
  });
});
