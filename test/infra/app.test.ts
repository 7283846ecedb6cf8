import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { describe, expect, it, vi } from 'vitest';
import { existingDatabase, existingVpc, theApp } from './the-app.ts';

// A synth is a second of work, and a machine may be busy.
vi.setConfig({ testTimeout: 240_000 });

const run = promisify(execFile);

describe('the app', () => {
  it.each([
    ['postgres', 'new', {}],
    ['postgres', 'existing', { ...existingDatabase, ...existingVpc }],
    ['sqlserver', 'new', { 'relaybox:engine': 'sqlserver' }],
    ['sqlserver', 'existing', { 'relaybox:engine': 'sqlserver', ...existingDatabase, ...existingVpc }],
  ])('synthesises on %s with a %s database, by the CDK’s own rules too', (engine, kind, context) => {
    const template = Template.fromStack(theApp(context));
    template.resourceCountIs('AWS::RDS::DBInstance', kind === 'new' ? 1 : 0);
    template.resourceCountIs('AWS::EC2::VPC', kind === 'new' ? 1 : 0);
    template.hasResourceProperties('AWS::Lambda::Function', {
      Description: 'Relaybox: carries outbox messages to their destinations',
    });
    expect(JSON.stringify(template.toJSON())).toContain(`\\"engine\\":\\"${engine}\\"`);
  });

  it('by default loses nothing with a zone, and pays for one endpoint of each service', () => {
    const template = Template.fromStack(theApp());
    template.hasResource('AWS::RDS::DBInstance', {
      DeletionPolicy: 'Snapshot',
      Properties: {
        DBInstanceClass: 'db.t4g.micro',
        MultiAZ: true,
        StorageEncrypted: true,
        DeletionProtection: true,
        BackupRetentionPeriod: 14,
        PubliclyAccessible: false,
      },
    });
    template.resourceCountIs('AWS::EC2::NatGateway', 0);
    const endpoints = Object.values(template.findResources('AWS::EC2::VPCEndpoint'));
    expect(endpoints.map(({ Properties }) => Properties.SubnetIds.length)).toEqual([1, 1, 1]);
  });

  it('takes destinations and inboxes by their ARNs', () => {
    const context = {
      'relaybox:destinations': {
        orders: { arn: 'arn:aws:sqs:eu-central-1:111122223333:orders.fifo', keyed: true },
        others: 'arn:aws:events:eu-central-1:111122223333:event-bus/others',
      },
      'relaybox:inboxes': JSON.stringify([
        { source: 'payments-service', queueArn: 'arn:aws:sqs:eu-central-1:111122223333:payments' },
        { source: 'stock-service' },
      ]),
    };
    const stack = theApp(context);
    expect(stack.relaybox.ingests.map(({ source }) => source)).toEqual(['payments-service', 'stock-service']);
    Template.fromStack(stack).hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      EventSourceArn: 'arn:aws:sqs:eu-central-1:111122223333:payments',
    });
  });

  it("tells producers an existing queue's own maximum message size, as the context has it", () => {
    const arn = 'arn:aws:sqs:eu-central-1:111122223333:orders';
    const stack = theApp({
      'relaybox:destinations': { orders: { arn, queueFacts: { maxMessageSizeBytes: 65_536 } } },
    });
    const limits = stack.resolve(stack.relaybox.environmentOfProducers['RELAYBOX_DESTINATION_LIMITS']);
    expect(JSON.parse(limits)).toMatchObject({ orders: { type: 'sqs', maxBytes: 65_536 } });
  });

  it('deploys the example when asked', () => {
    const template = Template.fromStack(theApp({ 'relaybox:example': 'true' }));
    template.hasResourceProperties('AWS::Lambda::Function', { Description: 'Handles order.placed' });
    template.hasOutput('*', { Value: { Ref: Match.stringLikeRegexp('PlaceOrder') } });
  });

  it('on an emulator leaves out what that does not have, and keeps the rest', () => {
    const context = { 'relaybox:emulator': 'true', 'relaybox:example': 'true', ...existingDatabase };
    const template = Template.fromStack(theApp(context));
    for (const type of ['AWS::EC2::VPC', 'AWS::EC2::SecurityGroup', 'AWS::RDS::DBInstance']) {
      template.resourceCountIs(type, 0);
    }
    template.resourceCountIs('Custom::Trigger', 1);
    template.hasResourceProperties('AWS::Lambda::Function', { Description: 'Handles order.placed' });
  });

  it('names every setting that is wrong, in one error', () => {
    const wrong = {
      'relaybox:engin': 'postgres',
      'relaybox:engine': 'oracle',
      'relaybox:sweepMinutes': '0',
      'relaybox:database': 'existing',
    };
    expect(() => theApp(wrong)).toThrow(
      /relaybox:engine must be one of postgres, sqlserver, not oracle; .*relaybox:databaseHost must be set.*relaybox:sweepMinutes must be a whole number from 1 to 1440, not 0; relaybox:engin must be left out: did you mean relaybox:engine\? known are /,
    );
  });

  it('says which setting an unknown one is near to, and nothing where none is', () => {
    for (const [name, meant] of [
      ['exmaple', 'example'],
      ['alarmemail', 'alarmEmail'],
      ['sweepMinute', 'sweepMinutes'],
    ]) {
      expect(() => theApp({ [`relaybox:${name}`]: 'true' })).toThrow(`did you mean relaybox:${meant}?`);
    }
    expect(() => theApp({ 'relaybox:colour': 'red' })).toThrow(
      'relaybox:colour must be left out: known are ',
    );
  });
});

describe('npx cdk synth', () => {
  it('needs neither credentials nor Docker, and makes the same assets each time', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'relaybox-synth-'));
    const env = {
      PATH: `${join(process.cwd(), 'node_modules/.bin')}:${process.env['PATH']}`,
      HOME: folder,
      AWS_EC2_METADATA_DISABLED: 'true',
      // Nothing is there, so that a bundler that wants Docker fails.
      CDK_DOCKER: join(folder, 'no-docker'),
    };
    const assetsOf = (output: string) => {
      const file = readdirSync(output).find((name) => name.endsWith('.assets.json')) ?? '';
      const { files } = JSON.parse(readFileSync(join(output, file), 'utf8'));
      return Object.keys(files).sort();
    };
    try {
      const outputs = [];
      const seconds: number[] = [];
      for (const name of ['one', 'two']) {
        const output = join(folder, name);
        const started = performance.now();
        const args = ['synth', '--quiet', '--output', output, '-c', 'relaybox:example=true'];
        await run(process.execPath, ['node_modules/aws-cdk/bin/cdk', ...args], { env });
        seconds.push((performance.now() - started) / 1000);
        outputs.push(assetsOf(output));
      }
      expect(outputs[1]).toEqual(outputs[0]);
      console.log(`cdk synth: ${seconds.map((each) => each.toFixed(1)).join(' and ')} s`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
