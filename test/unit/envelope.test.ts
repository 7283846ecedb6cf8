import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toEventBridge } from '../../shared/message/envelope/eventbridge.ts';
import { memberText } from '../../shared/message/envelope/json.ts';
import { readRecord, type SqsRecord } from '../../shared/message/envelope/read.ts';
import type { ReadMessage } from '../../shared/message/envelope/read-message.ts';
import { toSqs } from '../../shared/message/envelope/sqs.ts';
import type { OutgoingMessage } from '../../shared/message/message.ts';

const source = 'orders-service';

/** A record whose body and attributes a queue of ours would have got. */
function direct(message: OutgoingMessage): SqsRecord {
  const { body, attributes } = toSqs(message, { source, fifo: false });
  return record(body, attributes);
}

function record(body: string, attributes: Readonly<Record<string, string>> = {}): SqsRecord {
  const messageAttributes = Object.fromEntries(
    Object.entries(attributes).map(([name, stringValue]) => [name, { stringValue, dataType: 'String' }]),
  );
  return { messageId: 'sqs-1', body, messageAttributes };
}

/** SNS's envelope around what `toSqs` made. */
function throughSns(message: OutgoingMessage): SqsRecord {
  const { body, attributes } = toSqs(message, { source, fifo: false });
  return record(
    JSON.stringify({
      Type: 'Notification',
      MessageId: 'sns-1',
      TopicArn: 'arn:aws:sns:eu-central-1:1:orders',
      Message: body,
      MessageAttributes: Object.fromEntries(
        Object.entries(attributes).map(([name, Value]) => [name, { Type: 'String', Value }]),
      ),
    }),
  );
}

/** A rule's target with its input unchanged. */
function throughEventBridge(message: OutgoingMessage, eventId = 'event-1'): SqsRecord {
  return record(event(message, eventId));
}

function event(message: OutgoingMessage, eventId = 'event-1'): string {
  const { detail, detailType } = toEventBridge(message, { source });
  const head = JSON.stringify({
    version: '0',
    id: eventId,
    'detail-type': detailType,
    source,
    resources: [],
  });
  return `${head.slice(0, -1)},"detail":${detail}}`;
}

const routes: Record<string, (message: OutgoingMessage) => SqsRecord> = {
  SQS: direct,
  SNS: throughSns,
  EventBridge: throughEventBridge,
  'EventBridge with its detail alone': (message) => record(toEventBridge(message, { source }).detail),
  'EventBridge through SNS': (message) =>
    record(JSON.stringify({ Type: 'Notification', TopicArn: 'arn', Message: event(message) })),
};

function messageOf(given: SqsRecord): ReadMessage {
  const result = readRecord(given);
  if ('unreadable' in result) throw new Error(result.unreadable.reason);
  return result.message;
}

const text = (maxLength: number) =>
  fc
    .string({ unit: 'binary', minLength: 1, maxLength })
    .filter((value) => !value.includes('\0') && value.isWellFormed());

const outgoing: fc.Arbitrary<OutgoingMessage> = fc.record({
  id: fc.uuid(),
  messageType: text(40),
  payload: fc.oneof(
    fc.json({ maxDepth: 4, stringUnit: 'binary' }),
    fc.constantFrom('0', '""', '[1,2 , 3]', '{"a" : 1.0, "a":12345678901234567890123e-5}', '-0', ' null '),
    text(30).filter((value) => !/[^\t\n\r\x20-\uFFFD\u{10000}-\u{10FFFF}]/u.test(value)),
  ),
  headers: fc.dictionary(
    fc
      .oneof(text(20), fc.constantFrom('__proto__', 'traceparent', 'constructor'))
      .filter((name) => !name.startsWith('relaybox-')),
    fc.oneof(text(20), fc.constant('')),
    { maxKeys: 4 },
  ),
  correlationId: fc.option(fc.oneof(text(60), fc.constant(''))),
  partitionKey: fc.option(fc.oneof(text(60), fc.constant(''))),
  replay: fc.nat(3),
});

describe('a message has the same identity and content by every route', () => {
  for (const [route, send] of Object.entries(routes)) {
    test(route, () => {
      fc.assert(
        fc.property(outgoing, (message) => {
          const read = messageOf(send(message));
          expect(read.id).toBe(message.id);
          expect(read.messageType).toBe(message.messageType);
          expect(read.correlationId).toBe(message.correlationId);
          expect(read.partitionKey).toBe(message.partitionKey);
          expect(meaning(read.payload)).toEqual(meaning(message.payload));
          const { 'relaybox-source': from, ...headers } = read.headers;
          expect(from).toBe(source);
          expect(Object.entries(headers).sort()).toEqual(Object.entries(message.headers).sort());
        }),
        { numRuns: 200 },
      );
    });
  }

  test('two publishes on EventBridge, which makes a new event id each time', () => {
    fc.assert(
      fc.property(outgoing, (message) => {
        const first = messageOf(throughEventBridge(message, 'event-1'));
        expect(messageOf(throughEventBridge(message, 'event-2'))).toEqual(first);
      }),
      { numRuns: 50 },
    );
  });

  test('a replay by a person keeps the id, and makes a new deduplication id on FIFO', () => {
    const again = toSqs({ ...example, replay: 2 }, { source, fifo: true });
    expect(again.deduplicationId).toBe(`${example.id}.2`);
    expect(again.attributes['relaybox-id']).toBe(example.id);
  });
});

describe('a payload is carried as it was written', () => {
  const exact = '{"big":12345678901234567890, "exp":1.10e+2 ,\n"order":{"2":1,"1":2},"twice":1,"twice":2}';

  for (const [route, send] of Object.entries(routes)) {
    test(`numbers, spaces and the order of keys survive ${route}`, () => {
      expect(messageOf(send({ ...example, payload: exact })).payload).toBe(exact);
    });
  }

  test('a payload that is no JSON comes out as the same text, also from EventBridge', () => {
    for (const send of Object.values(routes)) {
      expect(messageOf(send({ ...example, payload: '<order id="1"/>' })).payload).toBe('<order id="1"/>');
    }
  });

  test('of two members with one name the last counts, as in every JSON parser', () => {
    expect(memberText('{"a":{"b":"}"},"\\u0061" : [1, 2] ,"b":3}', 'a')).toBe('[1, 2]');
  });

  test('the members of an object are found whatever is written around them', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()),
        fc.nat(3),
        (object, indent) => {
          const json = JSON.stringify(object, null, indent);
          for (const [name, value] of Object.entries(object)) {
            const found = memberText(json, name);
            expect(JSON.parse(found ?? 'missing')).toEqual(JSON.parse(JSON.stringify(value)));
          }
          expect(memberText(json, 'not there at all')).toBe(undefined);
        },
      ),
    );
  });
});

describe("hops and trace travel, and what is Relaybox's own does not become the application's", () => {
  const headers = { traceparent: '00-1-2-01', 'relaybox-hops': '3', 'relaybox-replay': '1', tenant: 'a' };

  for (const [route, send] of Object.entries(routes)) {
    test(route, () => {
      expect(messageOf(send({ ...example, headers })).headers).toEqual({
        traceparent: '00-1-2-01',
        'relaybox-hops': '3',
        'relaybox-source': source,
        tenant: 'a',
      });
    });
  }
});

describe('SQS', () => {
  test('takes at most eight of its ten attributes, however many headers there are', () => {
    const headers = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`h${index}`, 'v']));
    const { attributes } = toSqs(
      {
        ...example,
        headers: { ...headers, traceparent: 't', 'relaybox-hops': '1' },
        correlationId: 'c',
        partitionKey: 'k',
      },
      { source, fifo: true },
    );
    expect(Object.keys(attributes)).toHaveLength(8);
  });

  test('a legal partition key is the group id, any other one its digest, and never refused', () => {
    const groupOf = (partitionKey: string) =>
      toSqs({ ...example, partitionKey }, { source, fifo: true }).groupId;
    expect(groupOf('order-1')).toBe('order-1');
    expect(groupOf('a'.repeat(128))).toBe('a'.repeat(128));
    for (const key of ['a'.repeat(129), 'with space', 'ä', '', '\u0001', '\uFFFE']) {
      expect(groupOf(key)).toMatch(/^[0-9a-f]{64}$/);
      expect(groupOf(key)).toBe(groupOf(key));
    }
  });

  test('an unkeyed message is its own group on FIFO and has none on a standard queue', () => {
    expect(toSqs(example, { source, fifo: true }).groupId).toBe(example.id);
    expect(toSqs(example, { source, fifo: false }).groupId).toBe(undefined);
    expect(toSqs(example, { source, fifo: false }).deduplicationId).toBe(undefined);
  });

  test('refuses a foreign payload that it can never carry, and says where', () => {
    const refused = () => toSqs({ ...example, payload: 'abc\u0001' }, { source, fifo: false });
    expect(refused).toThrow('U+0001 at position 3');
    expect(() => toSqs({ ...example, payload: '' }, { source, fifo: false })).toThrow('empty');
    expect(toSqs({ ...example, payload: '"\uFFFE"' }, { source, fifo: false }).body).toBe('"\\ufffe"');
  });

  test('carries a message of exactly its limit, attributes counted, and refuses one byte more', () => {
    const fixed = toSqs({ ...example, payload: 'ä' }, { source, fifo: false }).bytes - 2;
    const room = 1_048_576 - fixed;
    const fits = 'ä'.repeat(Math.floor(room / 2)) + 'a'.repeat(room % 2);
    expect(toSqs({ ...example, payload: fits }, { source, fifo: false }).bytes).toBe(1_048_576);
    expect(() => toSqs({ ...example, payload: `${fits}a` }, { source, fifo: false })).toThrow(
      '1048577 bytes',
    );
  });
});

describe('EventBridge', () => {
  test('refuses what it can never carry', () => {
    expect(toEventBridge({ ...example, messageType: 'a'.repeat(128) }, { source }).detailType).toHaveLength(
      128,
    );
    expect(() => toEventBridge({ ...example, messageType: 'a'.repeat(129) }, { source })).toThrow(
      '129 characters',
    );
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(() => toEventBridge({ ...example, payload: nested(999) }, { source })).not.toThrow();
    expect(() => toEventBridge({ ...example, payload: nested(1000) }, { source })).toThrow('1001 levels');
    const large = JSON.stringify('ä'.repeat(500_000));
    expect(() => toEventBridge({ ...example, payload: large }, { source })).toThrow('which carries 998000');
  });
});

const example: OutgoingMessage = {
  id: '0198c0de-0000-7000-8000-000000000001',
  messageType: 'order.placed',
  payload: '{"orderId":"1"}',
  headers: {},
  correlationId: null,
  partitionKey: null,
  replay: 0,
};

/** A payload's meaning: JSON's value, or the text. */
function meaning(payload: string): unknown {
  try {
    return { json: JSON.parse(payload) };
  } catch {
    return { text: payload };
  }
}
