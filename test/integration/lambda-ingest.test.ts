import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalQueue, type LocalSqs, localAws, startSqs } from '../../local/sqs.ts';
import { readSettings } from '../../shared/lambda/config.ts';
import { closeConnections } from '../../shared/lambda/connections.ts';
import { ingestFor } from '../../shared/lambda/ingest.ts';
import type { Mapping, SqsRecord } from '../../shared/message/envelope/read.ts';
import { engine } from '../support/engine/engine.ts';
import { lambdaEngine } from '../support/engine/lambda.ts';

const db = await engine.createDatabase();
let sqs: LocalSqs;
let wakes: LocalQueue;
const context = { awsRequestId: 'r', functionName: 'inbox-ingest', getRemainingTimeInMillis: () => 30_000 };

beforeAll(async () => {
  process.env['AWS_REGION'] = localAws.region;
  process.env['AWS_ACCESS_KEY_ID'] = 'local';
  process.env['AWS_SECRET_ACCESS_KEY'] = 'local';
  process.env['POWERTOOLS_LOG_LEVEL'] = 'SILENT';
  sqs = await startSqs();
  wakes = await sqs.createQueue('wake-order-placed');
});

afterAll(async () => {
  await closeConnections();
  await sqs.stop();
  await db.drop();
});

function environment(url = db.url): Record<string, string> {
  return {
    RELAYBOX_DATABASE_URL: url,
    RELAYBOX_INBOX_SOURCE: 'orders-service',
    RELAYBOX_INBOX_WAKE_QUEUE_URLS: JSON.stringify({ 'order.placed': wakes.url }),
    AWS_ENDPOINT_URL_SQS: sqs.endpoint,
  };
}

function record(id: string, type = 'order.placed'): SqsRecord {
  return {
    messageId: `sqs-${id}`,
    body: '{}',
    messageAttributes: { 'relaybox-id': { stringValue: id }, 'relaybox-type': { stringValue: type } },
  };
}

describe('the ingest function', () => {
  test("stores the batch, wakes the type's handler and answers exactly what Lambda expects", async () => {
    const handler = ingestFor(lambdaEngine)({ settings: readSettings(environment()) });
    const id = randomUUID();
    expect(await handler({ Records: [record(id), record(randomUUID(), 'other')] }, context)).toEqual({
      batchItemFailures: [],
    });
    expect(await sqs.bodies(wakes)).toEqual(['{"wakeHops":0}']);
    expect(await handler({ Records: [record(id)] }, context)).toEqual({ batchItemFailures: [] });
    expect(await sqs.bodies(wakes)).toHaveLength(1);
    const columns = ['source', 'consumer', 'state'] as const;
    expect(await db.rows('inbox', { external_message_id: id }, { columns })).toEqual([
      { source: 'orders-service', consumer: '', state: 0 },
    ]);
  });

  test('reads requeued records again when it is invoked without any', async () => {
    const broken = { messageId: 'sqs-broken', body: 'order;7' };
    await ingestFor(lambdaEngine)({ settings: readSettings(environment()) })({ Records: [broken] }, context);
    const anew = { state: 0, processed_at_utc: null };
    await db.update('inbox', anew, { external_message_id: 'sqs-broken' });
    const mended = ingestFor(lambdaEngine)({
      settings: readSettings(environment()),
      mapping: ({ body }) => ({ id: body, messageType: 'order.placed', payload: {} }),
    });
    expect(await mended({}, context)).toEqual({ batchItemFailures: [] });
    const both = { external_message_id: ['sqs-broken', 'order;7'] };
    expect(await db.rows('inbox', both, { columns: ['external_message_id', 'state'] })).toEqual([
      { external_message_id: 'sqs-broken', state: 2 },
      { external_message_id: 'order;7', state: 0 },
    ]);
  });

  test("leaves what was requeued of another inbox's records to that inbox and its mapping", async () => {
    const ofInbox = (source: string, mapping?: Mapping) =>
      ingestFor(lambdaEngine)({
        settings: readSettings({ ...environment(), RELAYBOX_INBOX_SOURCE: source }),
        ...(mapping && { mapping }),
      });
    await ofInbox('payments')({ Records: [{ messageId: 'sqs-other', body: 'payment;7' }] }, context);
    const anew = { state: 0, processed_at_utc: null };
    await db.update('inbox', anew, { external_message_id: 'sqs-other' });
    const both = { external_message_id: ['sqs-other', 'payment;7'] };
    const states = () => db.rows('inbox', both, { columns: ['source', 'state'] });
    await ofInbox('shipping')({}, context);
    expect(await states()).toEqual([{ source: 'payments', state: 0 }]);
    await ofInbox('payments', ({ body }) => ({ id: body, messageType: 'payment', payload: {} }))({}, context);
    expect(await states()).toEqual([
      { source: 'payments', state: 2 },
      { source: 'payments', state: 0 },
    ]);
  });

  test('a database that is down leaves the whole batch on the queue', async () => {
    const url = new URL(db.url);
    url.port = '1';
    const settings = readSettings(environment(url.href));
    const response = await ingestFor(lambdaEngine)({ settings })(
      { Records: [record('1'), record('2')] },
      context,
    );
    expect(response).toEqual({
      batchItemFailures: [{ itemIdentifier: 'sqs-1' }, { itemIdentifier: 'sqs-2' }],
    });
  });

  test('a missing setting is named', async () => {
    const { RELAYBOX_INBOX_SOURCE: _, ...rest } = environment();
    const handler = ingestFor(lambdaEngine)({ settings: readSettings(rest) });
    await expect(handler({ Records: [record('1')] }, context)).rejects.toThrow(
      'RELAYBOX_INBOX_SOURCE must be set',
    );
  });
});
