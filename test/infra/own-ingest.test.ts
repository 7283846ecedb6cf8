import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type App, Duration, aws_lambda as lambda, type aws_sqs as sqs } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { InboxProps } from '../../infra/index.ts';
import { createMigratedDatabase, type MigratedDatabase } from '../support/migrated.ts';
import { invokeBare } from './bare-process.ts';
import { part, queue, relayboxIn, saidOf } from './checked-app.ts';
import { inline } from './inline.ts';

// The ready functions are not what this is about.
vi.mock('../../infra/constructs/bundles.ts', async () => {
  const { inline } = await import('./inline.ts');
  return { bundle: () => inline };
});

// A synth is a second of work, and a machine may be busy.
vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 });

const library = fileURLToPath(new URL('../../shared/lambda/postgres/index.ts', import.meta.url));

/** An ingest for records that say `{ "kind": …, "no": … }`, as a user writes one. */
const entryOf = (kind: string) => `
import { createIngest } from '${library}';

export const handler = createIngest({
  mapping({ body }) {
    const record = JSON.parse(body);
    if (record.kind !== '${kind}') return undefined;
    return { id: '${kind}-' + record.no, messageType: '${kind}.came', payload: { no: record.no } };
  },
});
`;

describe('an inbox with an ingest function of one’s own', () => {
  let folder: string;
  let database: MigratedDatabase;
  const kinds = ['order', 'refund'];
  const entry = (kind: string) => join(folder, `${kind}.ts`);

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'relaybox-own-ingest-'));
    for (const kind of kinds) writeFileSync(entry(kind), entryOf(kind));
    database = await createMigratedDatabase();
  });

  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await database.drop();
  });

  /** A Relaybox with these inboxes. */
  function appWith(inboxes: InboxProps[]) {
    const parts = part();
    const relaybox = relayboxIn(parts, { inboxes });
    const idOf = (construct: { node: { defaultChild?: unknown } }) =>
      parts.stack.getLogicalId(construct.node.defaultChild as lambda.CfnFunction);
    return { parts, relaybox, idOf, functions: relaybox.ingests.map((ingest) => ingest.function) };
  }

  test('is wired as the ready one is: its queue, its settings, the wakes, its sweep, and no finding', () => {
    const { parts, relaybox, idOf, functions } = appWith([
      {
        source: 'legacy',
        ingest: { code: inline, environment: { RELAYBOX_INBOX_SOURCE: 'no', STAGE: 'test' } },
        timeout: Duration.seconds(40),
      },
    ]);
    const handler = relaybox.addHandler('Order', { messageType: 'order.came', code: inline });
    const template = Template.fromStack(parts.stack);
    const [fn = functions[0] as lambda.Function] = functions;
    const resource = template.findResources('AWS::Lambda::Function')[idOf(fn)];
    const { Environment, MemorySize } = resource?.['Properties'] ?? {};
    expect(MemorySize).toBe(256);
    expect(Environment.Variables).toMatchObject({
      // What identifies messages is the inbox's, whatever its environment says.
      RELAYBOX_INBOX_SOURCE: 'legacy',
      STAGE: 'test',
      POWERTOOLS_SERVICE_NAME: relaybox.serviceName,
    });
    expect(JSON.stringify(Environment.Variables.RELAYBOX_INBOX_WAKE_QUEUE_URLS)).toContain(
      idOf(handler.wakeQueue.queue as sqs.Queue),
    );
    template.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
      FunctionName: { Ref: idOf(fn) },
      FunctionResponseTypes: ['ReportBatchItemFailures'],
    });
    template.hasResourceProperties('AWS::Scheduler::Schedule', {
      Target: { Arn: { 'Fn::GetAtt': [idOf(fn), 'Arn'] } },
    });
    template.hasResourceProperties('AWS::SQS::Queue', { VisibilityTimeout: 240 });
    expect(saidOf(parts)).toBe('');
  });

  test('may be a function made elsewhere: its own timeout is what queue, alarms and checks count with', () => {
    const parts = part();
    const fn = new lambda.Function(parts.stack, 'Theirs', {
      code: inline,
      handler: 'index.handler',
      runtime: lambda.Runtime.NODEJS_24_X,
      timeout: Duration.seconds(60),
      vpc: parts.vpc,
    });
    const { ingests } = relayboxIn(parts, {
      inboxes: [{ source: 'legacy', queue: queue(parts), ingest: { function: fn } }],
    });
    expect(ingests[0]?.function).toBe(fn);
    expect(ingests[0]?.timeout.toSeconds()).toBe(60);
    const said = saidOf(parts);
    expect(said).toContain('180 s, shorter than 6 × the timeout of App/Theirs (60 s) = 360 s');
    expect(fn.node.findAll().filter((child) => child instanceof lambda.CfnEventInvokeConfig)).toMatchObject([
      { maximumRetryAttempts: 0, maximumEventAgeInSeconds: 60 },
    ]);
  });

  test('without entry, code or function says what is missing', () => {
    expect(() => appWith([{ source: 'legacy', ingest: {} }])).toThrow(
      'The ingest of legacy needs an entry, a code or a function',
    );
  });

  test('two entries in one folder are bundled each for itself, and store what they map in a bare process', async () => {
    const { parts, idOf, functions } = appWith(
      kinds.map((kind) => ({ source: kind, ingest: { entry: entry(kind) } })),
    );
    const { directory, stacks } = (parts.stack.node.root as App).synth();
    const bundles = functions.map((fn) => {
      const [hash] = String(stacks[0]?.template.Resources[idOf(fn)].Properties.Code.S3Key).split('.');
      return join(directory, `asset.${hash}`);
    });
    for (const [index, bundle] of bundles.entries()) {
      const kind = String(kinds[index]);
      const body = JSON.stringify({ kind, no: 7 });
      const outcome = await invokeBare({
        bundle,
        alone: mkdtempSync(join(folder, 'alone-')),
        event: { Records: [{ messageId: kind, body, attributes: {}, messageAttributes: {} }] },
        env: { RELAYBOX_DATABASE_URL: database.url, RELAYBOX_INBOX_SOURCE: kind },
      });
      expect(outcome, kind).toMatchObject({ result: { batchItemFailures: [] } });
    }
    const { rows } = await database.pool.query(
      'SELECT source, external_message_id, message_type FROM inbox_messages ORDER BY source',
    );
    expect(rows).toEqual([
      { source: 'order', external_message_id: 'order-7', message_type: 'order.came' },
      { source: 'refund', external_message_id: 'refund-7', message_type: 'refund.came' },
    ]);
    expect(readFileSync(join(String(bundles[0]), 'index.mjs'), 'utf8')).not.toContain(folder);
    rmSync(directory, { recursive: true, force: true });
  });
});
