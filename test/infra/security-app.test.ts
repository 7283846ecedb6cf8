import { Validations } from 'aws-cdk-lib';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { AwsSolutionsChecks } from 'cdk-nag';
import { describe, expect, it, vi } from 'vitest';
import { existingDatabase, existingVpc, theApp } from './the-app.ts';

// A synth takes a second, and many where other tests take the processor.
vi.setConfig({ testTimeout: 120_000 });

const example = { 'relaybox:example': true };
const variants: [string, Record<string, unknown>][] = [
  ['as it is', {}],
  ['with the example', example],
  ['with a NAT gateway', { 'relaybox:egress': 'nat' }],
  ['on an existing database', existingDatabase],
  ['on an existing database in an existing VPC', { ...existingDatabase, ...existingVpc }],
  ['that always polls', { 'relaybox:mode': 'continuous' }],
  ['on an emulator', { ...existingDatabase, ...example, 'relaybox:emulator': true }],
  ['that writes to somebody', { 'relaybox:alarmEmail': 'oncall@example.com' }],
];

describe('cdk-nag finds nothing in the app', () => {
  it.each(variants)('%s', (_, context) => {
    const { violations } = new AwsSolutionsChecks().validateScope(theApp(context).node.root);
    expect(
      violations.map(({ ruleName, violatingResources }) => [
        ruleName,
        violatingResources.map((resource) => (resource as { constructPath?: string }).constructPath),
      ]),
    ).toEqual([]);
  });

  it('as a part of its synth', () => {
    const stack = theApp(example);
    Validations.of(stack.node.root).addPlugins(new AwsSolutionsChecks());
    expect(() => Template.fromStack(stack)).not.toThrow();
  });

  it('which would fail if there were something to find', () => {
    const stack = theApp();
    new Queue(stack, 'Bare');
    Validations.of(stack.node.root).addPlugins(new AwsSolutionsChecks());
    expect(() => Template.fromStack(stack)).toThrow('AwsSolutions-SQS4');
  });

  it('and each exception has its place and its reason', () => {
    const acknowledged = theApp(example)
      .node.findAll()
      .flatMap((construct) =>
        construct.node.metadata
          .filter(({ type }) => type === 'aws:cdk:acknowledged-rules')
          .flatMap(({ data }) =>
            Object.entries(data as Record<string, string>).map(([id, reason]) => ({
              where: construct.node.path,
              id: id.replace(/^Annotation::/, ''),
              reason,
            })),
          ),
      );
    const ours = acknowledged.filter(({ id }) => id.startsWith('AwsSolutions-'));
    expect(ours.length).toBeGreaterThan(10);
    for (const { id, where, reason } of ours) {
      expect(reason.length, `${where} ${id}`).toBeGreaterThan(30);
      if (id === 'AwsSolutions-RDS11') expect(where).toBe('Relaybox/Database');
      else if (id === 'AwsSolutions-SQS3') expect(where).toMatch(/\/Wake\/Queue$/);
      else {
        expect(id).toMatch(/^AwsSolutions-IAM5\[Resource::(\*|arn:.*:ec2:.*:\*\/\*)\]$/);
        // A role's own statements only, not the policy with what is granted to it.
        expect(where).toMatch(/Role\/Resource$/);
      }
    }
  });
});

describe('the network', () => {
  const template = Template.fromStack(theApp(example));

  it('has no way in or out but the endpoints of the services that are called', () => {
    template.resourceCountIs('AWS::EC2::InternetGateway', 0);
    template.resourceCountIs('AWS::EC2::NatGateway', 0);
    const services = Object.values(template.findResources('AWS::EC2::VPCEndpoint')).map(({ Properties }) =>
      JSON.stringify(Properties.ServiceName).replace(/.*\.(\w+)"\W*$/, '$1'),
    );
    expect(services.sort()).toEqual(['events', 'secretsmanager', 'sqs']);
  });

  it('lets only the functions to the endpoints, at their port', () => {
    const ids = Object.keys(template.findResources('AWS::EC2::SecurityGroup'));
    const [endpoints] = ids.filter((id) => id.startsWith('NetworkEndpoints'));
    const [functions] = ids.filter((id) => id.startsWith('RelayboxNetworkSecurityGroup'));
    const into = Object.values(
      template.findResources('AWS::EC2::SecurityGroupIngress', {
        Properties: { GroupId: { 'Fn::GetAtt': [endpoints, 'GroupId'] } },
      }),
    );
    expect(into.map(({ Properties }) => Properties)).toEqual([
      expect.objectContaining({
        IpProtocol: 'tcp',
        FromPort: 443,
        ToPort: 443,
        SourceSecurityGroupId: { 'Fn::GetAtt': [functions, 'GroupId'] },
      }),
    ]);
  });

  it('has no group that lets in an address', () => {
    for (const { Properties } of Object.values(template.findResources('AWS::EC2::SecurityGroup'))) {
      expect(Properties.SecurityGroupIngress).toBeUndefined();
    }
    const rules = Object.values(template.findResources('AWS::EC2::SecurityGroupIngress'));
    for (const { Properties } of rules) expect(Properties.SourceSecurityGroupId).toBeDefined();
  });

  it('keeps what it turned away in a log with an end', () => {
    template.hasResourceProperties('AWS::EC2::FlowLog', { TrafficType: 'REJECT' });
    for (const { Properties } of Object.values(template.findResources('AWS::Logs::LogGroup'))) {
      expect(Properties.RetentionInDays).toBe(30);
    }
  });

  it('is there before the migration, which reads its secret through it', () => {
    const [trigger] = Object.values(template.findResources('Custom::Trigger'));
    const waits = (trigger?.['DependsOn'] ?? []) as string[];
    expect(waits.filter((id) => id.startsWith('NetworkVpcSecretsManager'))).toHaveLength(1);
    expect(waits.some((id) => id.startsWith('NetworkEndpointsfrom'))).toBe(true);
  });
});

describe('on SQL Server', () => {
  const sqlServer = { 'relaybox:engine': 'sqlserver' };

  it.each([
    ['new', sqlServer],
    ['existing', { ...existingDatabase, ...sqlServer }],
  ])('cdk-nag finds nothing either: %s', (_, context) => {
    const { violations } = new AwsSolutionsChecks().validateScope(theApp(context).node.root);
    expect(violations).toEqual([]);
  });
});

describe('the database', () => {
  it('is private, encrypted, and hard to lose; its password is made and changed by RDS', () => {
    const template = Template.fromStack(theApp());
    template.hasResource('AWS::RDS::DBInstance', {
      Properties: {
        StorageEncrypted: true,
        PubliclyAccessible: false,
        DeletionProtection: true,
        MultiAZ: true,
        BackupRetentionPeriod: 14,
        ManageMasterUserPassword: true,
        MasterUserPassword: Match.absent(),
      },
      DeletionPolicy: 'Snapshot',
      UpdateReplacePolicy: 'Snapshot',
    });
  });

  it("is reached by the functions with RDS's secret, by its reference", () => {
    const template = Template.fromStack(theApp(example));
    const functions = Object.entries(template.findResources('AWS::Lambda::Function')).filter(
      ([, { Properties }]) => Properties.Environment?.Variables.RELAYBOX_DATABASE,
    );
    expect(functions.length).toBeGreaterThanOrEqual(6);
    for (const [id, { Properties }] of functions) {
      const text = JSON.stringify(Properties.Environment.Variables.RELAYBOX_DATABASE);
      expect(text, id).toContain('MasterUserSecret.SecretArn');
      expect(text, id).not.toMatch(/resolve:|password/i);
    }
  });
});
