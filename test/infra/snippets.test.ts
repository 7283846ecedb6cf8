import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  App,
  Duration,
  aws_ec2 as ec2,
  aws_events as events,
  aws_lambda as lambda,
  aws_rds as rds,
  Stack,
  aws_sns as sns,
  aws_sqs as sqs,
  aws_events_targets as targets,
} from 'aws-cdk-lib';
import { Annotations, Match, Template } from 'aws-cdk-lib/assertions';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import * as cdk from '../../infra/index.ts';
import { inline } from './inline.ts';

// The pages are about wiring, not about what is in the ready functions.
vi.mock('../../infra/constructs/bundles.ts', async () => {
  const { inline } = await import('./inline.ts');
  return { bundle: () => inline };
});

// A synth is a second of work, and a machine may be busy.
vi.setConfig({ testTimeout: 90_000 });

const cwd = process.cwd();
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'relaybox-snippets-'));
  mkdirSync(join(folder, 'functions'));
  for (const name of ['order-placed', 'emails', 'ingest']) {
    writeFileSync(join(folder, 'functions', `${name}.mts`), 'export const handler = async () => undefined;');
  }
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** The page's block that makes a Relaybox, without its imports, its entries where this test has put some. */
function snippetOf(page: string): string {
  const blocks = readFileSync(join(cwd, page), 'utf8').split('```');
  const found = blocks.find((block) => block.startsWith('ts\n') && block.includes('new Relaybox(this'));
  return String(found)
    .replace(/^ts\n/, '')
    .replace(/^import .*\n/gm, '')
    .replaceAll("'functions/", `'${folder}/functions/`);
}

/** What a page's reader has: their own things, by the names that the page uses. */
function reader() {
  const stack = new Stack(new App(), 'App');
  const vpc = new ec2.Vpc(stack, 'Vpc', { natGateways: 1, maxAzs: 2 }) as ec2.IVpc;
  const things = {
    ...cdk,
    Duration,
    events,
    sqs,
    targets,
    cluster: new rds.DatabaseCluster(stack, 'Cluster', {
      engine: rds.DatabaseClusterEngine.auroraPostgres({ version: rds.AuroraPostgresEngineVersion.VER_16_6 }),
      writer: rds.ClusterInstance.serverlessV2('Writer'),
      vpc,
    }),
    alarmTopic: new sns.Topic(stack, 'Alarms'),
    placeOrderFunction: new lambda.Function(stack, 'PlaceOrder', {
      code: inline,
      handler: 'index.handler',
      runtime: lambda.Runtime.NODEJS_24_X,
      vpc,
    }),
  };
  return { stack, things };
}

test.each(['README.md', 'docs/deploying.md'])(
  'what %s shows synthesises, and no check fails',
  async (page) => {
    const { stack, things } = reader();
    const file = join(folder, `${page.replaceAll('/', '-')}.mjs`);
    const names = Object.keys(things).join(', ');
    writeFileSync(file, `export function write({ ${names} }) {\n${snippetOf(page)}\nreturn relaybox;\n}\n`);
    const { write } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as {
      write: (this: Stack, given: typeof things) => cdk.Relaybox;
    };
    const relaybox = write.call(stack, things);
    expect(relaybox.handlers.length + relaybox.consumers.length + relaybox.producers.length).toBe(3);
    const template = Template.fromStack(stack);
    const arnOf = (queue: sqs.IQueue | undefined) => ({
      'Fn::GetAtt': [stack.getLogicalId(queue?.node.defaultChild as sqs.CfnQueue), 'Arn'],
    });
    const [orders, emails] = [relaybox.ingests[0]?.queue, relaybox.consumers[0]?.queue];
    // What is published to `orders` is stored, and what the handler says in its turn reaches the consumer.
    for (const queue of [orders, emails]) {
      template.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
        EventSourceArn: arnOf(queue),
        FunctionResponseTypes: ['ReportBatchItemFailures'],
      });
    }
    const destinations = Object.values(template.findResources('AWS::Lambda::Function')).map(
      ({ Properties }) => JSON.stringify(Properties.Environment?.Variables.RELAYBOX_DESTINATIONS ?? ''),
    );
    const ordersId = stack.getLogicalId(orders?.node.defaultChild as sqs.CfnQueue);
    expect(destinations.join('\n')).toContain(`{"Ref":"${ordersId}"}`);
    template.hasResourceProperties('AWS::Events::Rule', {
      EventPattern: { 'detail-type': ['invoice.created'] },
      Targets: [Match.objectLike({ Arn: arnOf(emails) })],
    });
    const said = Annotations.fromStack(stack)
      .findWarning('*', Match.anyValue())
      .map(({ entry }) => String(entry.data));
    // One list of what only the reader knows, and nothing that is not Relaybox's.
    expect(said).toEqual([expect.stringContaining('Relaybox checked this deployment')]);
    expect(said[0]).not.toContain('FAIL');
  },
);
