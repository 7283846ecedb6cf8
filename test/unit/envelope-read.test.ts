import { describe, expect, test } from 'vitest';
import {
  type Mapping,
  type ReadResult,
  readRecord,
  type SqsRecord,
  storedRecord,
} from '../../shared/message/envelope/read.ts';

const good = { 'relaybox-id': 'id-1', 'relaybox-type': 'order.placed' };

function record(body: unknown, attributes: Record<string, string> = {}): SqsRecord {
  return {
    messageId: 'sqs-1',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    messageAttributes: Object.fromEntries(
      Object.entries(attributes).map(([name, stringValue]) => [name, { stringValue }]),
    ),
  };
}

function reasonOf(result: ReadResult): string {
  if (!('unreadable' in result)) throw new Error(`it was read: ${JSON.stringify(result.message)}`);
  expect(result.unreadable.id).toBe('sqs-1');
  return result.unreadable.reason;
}

function messageOf(result: ReadResult) {
  if ('unreadable' in result) throw new Error(result.unreadable.reason);
  return result.message;
}

const eventBridge = (detail: unknown) => ({
  id: 'event-1',
  'detail-type': 'order.placed',
  source: 's',
  detail,
});

describe('what can not be understood is kept with a reason, and never throws', () => {
  const cases: [string, SqsRecord, string][] = [
    ['no JSON and no attributes', record('hello'), 'no JSON object'],
    ['an empty body', record(''), 'no JSON object'],
    ['an array', record([1]), 'no JSON object'],
    ['an object of no known envelope', record({ orderId: 1 }), 'no envelope known here'],
    ['our attributes without id', record('{}', { 'relaybox-type': 't' }), 'it has no id'],
    ['our attributes without type', record('{}', { 'relaybox-id': 'i' }), 'it has no message type'],
    [
      'an id over the column',
      record('{}', { ...good, 'relaybox-id': 'i'.repeat(301) }),
      'id has 301 characters',
    ],
    [
      'a type over the column',
      record('{}', { ...good, 'relaybox-type': 't'.repeat(201) }),
      'message type has 201',
    ],
    [
      'a key over the column',
      record('{}', { ...good, 'relaybox-partition-key': 'k'.repeat(201) }),
      'partition key has 201',
    ],
    [
      'headers that are no JSON',
      record('{}', { ...good, 'relaybox-headers': 'x' }),
      'relaybox-headers is no JSON object',
    ],
    [
      'a NUL in a header',
      record('{}', { ...good, 'relaybox-headers': '{"a":"\\u0000"}' }),
      'a header holds a NUL',
    ],
    [
      'half a pair in a header',
      record('{}', { ...good, 'relaybox-headers': '{"a":"\\ud800"}' }),
      'half of a surrogate pair',
    ],
    ['a NUL in the body', record('a\0b', good), 'payload holds a NUL at position 1'],
    ['metadata without id', record(eventBridge({ metadata: { type: 't' }, data: 1 })), 'it has no id'],
    [
      'metadata with a number as id',
      record(eventBridge({ metadata: { id: 1 }, data: 1 })),
      'id is no text but number',
    ],
    [
      'an unknown encoding',
      record(eventBridge({ metadata: { id: 'i', encoding: 'gzip' }, data: '' })),
      '"gzip"',
    ],
    ['an event without id', record({ ...eventBridge({}), id: undefined }), 'it has no id'],
    ['a CloudEvent without id', record({ specversion: '1.0', type: 't', source: 's' }), 'it has no id'],
    ['a NUL in an id', record({ specversion: '1.0', id: 'a\0', type: 't' }), 'id holds a NUL'],
    ['binary data', record({ specversion: '1.0', id: 'i', type: 't', data_base64: '/w==' }), 'binary'],
    ['SNS inside SNS without end', record(sns(sns(sns(sns(sns('x')))))), 'no envelope known here'],
    [
      'a subscription confirmation',
      record({ Type: 'SubscriptionConfirmation', TopicArn: 'a', Message: 'm' }),
      'no envelope',
    ],
  ];
  for (const [what, given, reason] of cases) {
    test(what, () => expect(reasonOf(readRecord(given))).toContain(reason));
  }

  test('deeply nested JSON', () => {
    expect(reasonOf(readRecord(record('['.repeat(200_000))))).toContain('no JSON object');
    const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    expect(messageOf(readRecord(record(deep, good))).payload).toBe(deep);
  });
});

function sns(message: unknown): unknown {
  return { Type: 'Notification', TopicArn: 'arn', Message: JSON.stringify(message) };
}

describe('ids are compared exactly', () => {
  test('case, spaces and 300 astral characters stay as they are', () => {
    for (const id of ['Order-1', 'order-1', 'order-1 ', ' order-1', '😀'.repeat(300)]) {
      expect(messageOf(readRecord(record('{}', { ...good, 'relaybox-id': id }))).id).toBe(id);
    }
  });
});

describe('messages of other programs', () => {
  test('raw delivery of SNS looks like SQS', () => {
    const read = messageOf(readRecord(record('<xml/>', { ...good, 'relaybox-correlation-id': 'c' })));
    expect(read).toMatchObject({
      id: 'id-1',
      messageType: 'order.placed',
      payload: '<xml/>',
      correlationId: 'c',
    });
  });

  test("an event of EventBridge that isn't ours has the event's id", () => {
    const read = messageOf(
      readRecord(record('{"id":"event-1","detail-type":"t","source":"aws.s3","detail":{"n": 1.0}}')),
    );
    expect(read).toMatchObject({ id: 'event-1', messageType: 't', payload: '{"n": 1.0}' });
    expect(read.headers).toEqual({ 'relaybox-source': 'aws.s3' });
  });

  test('a CloudEvent, by itself and in the detail of an event', () => {
    const cloudEvent = {
      specversion: '1.0',
      id: 'A-1',
      type: 'com.example.placed',
      source: '/orders',
      subject: 'o',
      partitionkey: 'k',
      datacontenttype: 'application/json; charset=utf-8',
      data: 'text',
    };
    for (const body of [cloudEvent, eventBridge(cloudEvent), sns(cloudEvent)]) {
      const read = messageOf(readRecord(record(body)));
      expect(read).toMatchObject({
        id: 'A-1',
        messageType: 'com.example.placed',
        payload: '"text"',
        partitionKey: 'k',
      });
      expect(read.headers).toMatchObject({ subject: 'o', 'relaybox-source': '/orders' });
    }
    const xml = { ...cloudEvent, datacontenttype: 'text/xml', data: '<a/>' };
    expect(messageOf(readRecord(record(xml))).payload).toBe('<a/>');
    const base64 = { ...cloudEvent, data: undefined, data_base64: Buffer.from('{"a":1}').toString('base64') };
    expect(messageOf(readRecord(record(base64))).payload).toBe('{"a":1}');
  });
});

describe('a mapping of your own', () => {
  const mapping: Mapping = ({ body }) => {
    const order = JSON.parse(body) as { number?: string };
    return order.number === undefined
      ? undefined
      : { id: order.number, messageType: 'order', payload: order, partitionKey: order.number };
  };

  test('reads what it knows and leaves the rest to the known envelopes', () => {
    expect(messageOf(readRecord(record({ number: '7' }), mapping))).toMatchObject({
      id: '7',
      messageType: 'order',
      payload: '{"number":"7"}',
      partitionKey: '7',
    });
    expect(messageOf(readRecord(record({ x: 1 }, good), mapping)).id).toBe('id-1');
  });

  test('one that throws, or answers nonsense, makes the record unreadable', () => {
    expect(reasonOf(readRecord(record('no JSON'), mapping))).toContain('the mapping threw SyntaxError');
    const tooLong: Mapping = () => ({ id: 'i'.repeat(301), messageType: 't', payload: 1 });
    expect(reasonOf(readRecord(record('x'), tooLong))).toContain('301 characters');
    const nothing: Mapping = () => ({ id: 'i', messageType: 't', payload: undefined });
    expect(reasonOf(readRecord(record('x'), nothing))).toContain('payload of undefined');
  });

  test.each<[string, unknown, string]>([
    [
      'a promise that rejects',
      () => Promise.reject(new Error('later')),
      'the mapping gave a promise: it has to answer at once',
    ],
    ['null', () => null, 'the mapping gave null instead of a message'],
    ['a text', () => '{}', 'the mapping gave a string instead of a message'],
  ])('that gives %s says so', async (_, mapping, reason) => {
    expect(reasonOf(readRecord(record('{}'), mapping as Mapping))).toContain(reason);
    // A rejection that nobody takes would end the process.
    await new Promise((resolve) => setTimeout(resolve, 5));
  });

  test('a sender’s own type can not be the one that unreadable records have, by any envelope', () => {
    const reserved = 'relaybox.unreadable';
    const event = { 'detail-type': reserved, detail: {}, id: 'e', source: 's', time: 't', account: '1' };
    const mapping: Mapping = () => ({ id: 'i', messageType: reserved, payload: 1 });
    for (const result of [
      readRecord(record('{}', { ...good, 'relaybox-type': reserved })),
      readRecord(record({ specversion: '1.0', id: 'c', type: reserved, source: 's', data: 1 })),
      readRecord(record(event)),
      readRecord(record('{}'), mapping),
    ]) {
      expect(reasonOf(result)).toContain('its message type is relaybox.unreadable');
    }
  });

  test('an unreadable record can be read again later, attributes and all', () => {
    const result = readRecord(record('a', { kind: 'order', 'relaybox-type': 'x' }));
    if (!('unreadable' in result)) throw new Error('read');
    const again = storedRecord(result.unreadable);
    const mended: Mapping = ({ messageId, messageAttributes, body }) => ({
      id: messageId,
      messageType: messageAttributes?.['kind']?.stringValue ?? '',
      payload: body,
    });
    expect(messageOf(readRecord(again, mended))).toMatchObject({
      id: 'sqs-1',
      messageType: 'order',
      payload: 'a',
    });
  });
});
