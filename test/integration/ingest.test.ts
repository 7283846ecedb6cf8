import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { type IngestOptions, ingest } from '../../shared/inbox/ingest.ts';
import { reread } from '../../shared/inbox/reread.ts';
import { toEventBridge } from '../../shared/message/envelope/eventbridge.ts';
import { UNREADABLE_TYPE } from '../../shared/message/envelope/names.ts';
import type { SqsRecord } from '../../shared/message/envelope/read.ts';
import { toSqs } from '../../shared/message/envelope/sqs.ts';
import type { OutgoingMessage } from '../../shared/message/message.ts';
import { engine } from '../support/engine/engine.ts';
import { recorder } from '../support/recorder.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());

const store = db.inbox;

const outgoing = (fields: Partial<OutgoingMessage> = {}): OutgoingMessage => ({
  id: randomUUID(),
  messageType: 'order.placed',
  payload: '{"orderId":"1"}',
  headers: {},
  correlationId: null,
  partitionKey: null,
  replay: 0,
  ...fields,
});

function bySqs(message: OutgoingMessage): SqsRecord {
  const { body, attributes } = toSqs(message, { source: 'orders-service', fifo: false });
  return raw(body, attributes);
}

function byEventBridge(message: OutgoingMessage): SqsRecord {
  const { detail, detailType, source } = toEventBridge(message, { source: 'orders-service' });
  const head = JSON.stringify({ version: '0', id: randomUUID(), 'detail-type': detailType, source });
  return raw(`${head.slice(0, -1)},"detail":${detail}}`);
}

function raw(body: string, attributes: Readonly<Record<string, string>> = {}): SqsRecord {
  const messageAttributes = Object.fromEntries(
    Object.entries(attributes).map(([name, stringValue]) => [name, { stringValue }]),
  );
  return {
    messageId: randomUUID(),
    body,
    messageAttributes,
    eventSourceARN: 'arn:aws:sqs:eu-central-1:1:in',
  };
}

/** Each test's inbox has a source of its own. */
async function into(source: string, records: readonly SqsRecord[], options: Partial<IngestOptions> = {}) {
  const telemetry = recorder();
  const response = await ingest(records, { store, consumer: '', source, telemetry, ...options });
  return {
    counts: telemetry.counts,
    failures: response.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier),
  };
}

const rows = (source: string) => db.rows('inbox', { source });

describe('a message is stored once, whatever route it came by', () => {
  test('twice in a batch, again in another, and by another route: one row', async () => {
    const message = outgoing({ headers: { tenant: 'ä' }, correlationId: 'c', partitionKey: 'k' });
    const other = outgoing();
    const first = await into('routes', [bySqs(message), byEventBridge(message), bySqs(other)]);
    const second = await into('routes', [byEventBridge(message), bySqs(other)]);
    expect([first.failures, second.failures]).toEqual([[], []]);
    expect(first.counts).toEqual({ Ingested: 2, Duplicates: 1 });
    expect(second.counts).toEqual({ Duplicates: 2 });
    expect(await rows('routes')).toMatchObject([
      {
        external_message_id: message.id,
        message_type: 'order.placed',
        payload: message.payload,
        headers: { tenant: 'ä', 'relaybox-source': 'orders-service' },
        state: 0,
        last_error: null,
        correlation_id: 'c',
        partition_key: 'k',
      },
      { external_message_id: other.id },
    ]);
  });

  test('ids that differ in case or in spaces at the end are different messages', async () => {
    const ids = ['Order-1', 'order-1', 'order-1 ', ' order-1'];
    const { counts } = await into(
      'exact',
      ids.map((id) => bySqs(outgoing({ id }))),
    );
    expect(counts).toEqual({ Ingested: 4 });
    expect((await rows('exact')).map((row) => row.external_message_id)).toEqual(ids);
  });

  test('another payload under a known id is told', async () => {
    const message = outgoing();
    const { counts } = await into('reused', [
      bySqs(message),
      bySqs({ ...message, payload: '{"orderId":"2"}' }),
    ]);
    expect(counts).toEqual({ Ingested: 1, DuplicatesThatDiffer: 1 });
  });

  test('numbers are stored as they were sent', async () => {
    const payload = '{"n":12345678901234567890,"m":1.10}';
    await into('numbers', [byEventBridge(outgoing({ payload }))]);
    expect(await rows('numbers')).toMatchObject([{ payload }]);
  });
});

describe('what can be stored but not understood becomes a Failed row, and takes nothing with it', () => {
  test('with its raw body and a reason, once', async () => {
    const good = outgoing();
    const bad = [
      raw('no JSON, no attributes'),
      raw(''),
      raw('{"orderId":1}'),
      raw('{}', { 'relaybox-id': 'i'.repeat(301), 'relaybox-type': 't' }),
      raw('{}', { 'relaybox-id': 'id', 'relaybox-type': 't'.repeat(201) }),
      raw('{"specversion":"1.0","id":"a\\u0000","type":"t","source":"s"}'),
      raw('{}', { 'relaybox-id': 'id', 'relaybox-type': 't', 'relaybox-headers': '{"a":"\\u0000"}' }),
      raw('a NUL \0 and half \ud800 a pair'),
    ];
    const records = [...bad.slice(0, 4), bySqs(good), ...bad.slice(4)];
    const { counts, failures } = await into('unreadable', records);
    expect(failures).toEqual([]);
    expect(counts).toEqual({ Ingested: 1, Unreadable: bad.length });
    expect((await into('unreadable', records)).counts).toEqual({ Duplicates: records.length });
    const stored = await rows('unreadable');
    expect(stored.map(({ state }) => state)).toEqual(records.map((_, index) => (index === 4 ? 0 : 3)));
    expect(stored[0]).toMatchObject({
      external_message_id: bad[0]?.messageId,
      message_type: UNREADABLE_TYPE,
      payload: 'no JSON, no attributes',
      last_error: expect.stringContaining('could not be read'),
    });
  });

  const refused = engine.countsCodeUnits
    ? 'whose id has too many code units'
    : 'whose index entry is too large';
  test(`a row ${refused} for the database is kept as unreadable`, async () => {
    const wide = { 'relaybox-id': randomWide(300), 'relaybox-type': 't' };
    const [source, consumer] = engine.countsCodeUnits ? ['units', ''] : [randomWide(200), randomWide(200)];
    const { failures, counts } = await into(source, [raw('{}', wide), bySqs(outgoing())], { consumer });
    expect(failures).toEqual([]);
    expect(counts).toEqual({ Ingested: 1, Unreadable: 1 });
    expect(await rows(source)).toMatchObject([
      { state: 3, last_error: expect.stringContaining('the database refused it') },
      { state: 0 },
    ]);
  });

  test('after the mapping was mended and a person has requeued it, it becomes its message', async () => {
    const record = raw('order;42', { kind: 'order' });
    await into('mended', [record]);
    await db.update('inbox', { state: 0, processed_at_utc: null, retry_count: 0 }, { source: 'mended' });
    const types = await reread({
      store,
      consumer: '',
      source: 'mended',
      leaseMs: 60_000,
      mapping: ({ body, messageAttributes }) => ({
        id: body.split(';')[1] ?? '',
        messageType: messageAttributes?.['kind']?.stringValue ?? '',
        payload: { text: body },
      }),
    });
    expect(types).toEqual(['order']);
    expect(await rows('mended')).toMatchObject([
      { external_message_id: record.messageId, state: 2 },
      { external_message_id: '42', message_type: 'order', state: 0, payload: '{"text":"order;42"}' },
    ]);
  });

  test('requeued without a better mapping, it ends Failed again', async () => {
    await into('unmended', [raw('order;43')]);
    await db.update('inbox', { state: 0, processed_at_utc: null }, { source: 'unmended' });
    expect(await reread({ store, consumer: '', source: 'unmended', leaseMs: 60_000 })).toEqual([]);
    expect(await rows('unmended')).toMatchObject([
      { state: 3, last_error: expect.stringContaining('read again') },
    ]);
  });
});

describe('what the database can not take now comes again', () => {
  test('a database that is down', async () => {
    const url = new URL(db.url);
    url.port = '1';
    const down = db.instance({ url: url.href });
    const records = [bySqs(outgoing()), bySqs(outgoing())];
    const { failures } = await into('down', records, { store: down.inbox });
    expect(failures).toEqual(records.map(({ messageId }) => messageId));
    await down.end();
  });

  test('a table that is not there', async () => {
    const elsewhere = await engine.createDatabase();
    const text = `DROP TABLE ${elsewhere.tables.inbox}`;
    await elsewhere.sql({ postgres: text, sqlserver: text });
    const { failures } = await into('missing', [bySqs(outgoing())], { store: elsewhere.inbox });
    expect(failures).toHaveLength(1);
    await elsewhere.drop();
  });
});

/** Characters of four bytes that do not compress, so that an index entry is as large as it can be. */
function randomWide(length: number): string {
  return Array.from({ length }, () =>
    String.fromCodePoint(0x20000 + Math.floor(Math.random() * 40_000)),
  ).join('');
}
