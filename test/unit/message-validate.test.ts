import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toEventBridge } from '../../shared/message/envelope/eventbridge.ts';
import { toSqs } from '../../shared/message/envelope/sqs.ts';
import { MessageRefused } from '../../shared/message/errors.ts';
import {
  type DestinationLimits,
  eventBridgeBytes,
  eventBridgeEntryBytes,
  sqsBytes,
  sqsMessageBytes,
} from '../../shared/message/limits.ts';
import type { NewMessage, OutboxRow, OutgoingMessage } from '../../shared/message/message.ts';
import { toOutboxRow } from '../../shared/message/validate.ts';
import { titled } from '../support/titled.ts';

const minimal: NewMessage = { destination: 'orders', messageType: 'order.placed', payload: { a: 1 } };

function refusal(message: unknown, known?: DestinationLimits): MessageRefused {
  try {
    toOutboxRow(message as NewMessage, known);
  } catch (error) {
    expect(error).toBeInstanceOf(MessageRefused);
    return error as MessageRefused;
  }
  throw new Error('it was not refused');
}

test('a minimal message becomes a row with an id and unlimited retries', () => {
  expect(toOutboxRow(minimal, undefined)).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
    destination: 'orders',
    messageType: 'order.placed',
    payload: '{"a":1}',
    headers: null,
    correlationId: null,
    partitionKey: null,
    delaySeconds: null,
    maxRetries: 2_147_483_647,
  });
});

describe('no hostage: refused at add, with field, limit and value', () => {
  const faults: [field: string, fault: Record<string, unknown>, actual: RegExp][] = [
    ['id', { id: 'order-1' }, /"order-1"/],
    ['id', { id: 42 }, /number/],
    ['destination', { destination: '' }, /""/],
    ['destination', { destination: 'a b' }, /"a b"/],
    ['destination', { destination: 'ä' }, /"ä"/],
    ['destination', { destination: 'a'.repeat(301) }, /301 characters/],
    ['destination', { destination: undefined }, /undefined/],
    ['messageType', { messageType: '' }, /0 characters/],
    ['messageType', { messageType: '😀'.repeat(201) }, /201 characters/],
    ['messageType', { messageType: 'relaybox.unreadable' }, /relaybox\.unreadable/],
    ['messageType', { messageType: 'a\0' }, /U\+0000/],
    ['messageType', { messageType: 'a\u0001' }, /U\+0001/],
    ['messageType', { messageType: 'a\ud800' }, /U\+D800/],
    ['correlationId', { correlationId: 'x'.repeat(201) }, /201 characters/],
    ['correlationId', { correlationId: '' }, /0 characters/],
    ['partitionKey', { partitionKey: '' }, /0 characters/],
    ['partitionKey', { partitionKey: 7 }, /number/],
    ['partitionKey', { partitionKey: 'a\uffff' }, /U\+FFFF/],
    ['payload', { payload: undefined }, /undefined/],
    ['payload', { payload: 'x'.repeat(1_100_000) }, /110\d{4} bytes/],
    ['headers', { headers: ['a'] }, /an array/],
    ['headers', { headers: new Map([['a', 'b']]) }, /a Map/],
    ['headers', { headers: new Headers({ a: 'b' }) }, /a Headers/],
    ['headers', { headers: new Date() }, /a Date/],
    ['headers', { headers: { '': 'a' } }, /without a name/],
    ['headers.n', { headers: { n: 1 } }, /number/],
    ['headers.a', { headers: { a: 'x\0' } }, /NUL/],
    ['headers.a', { headers: { a: 'x\udfff' } }, /surrogate/],
    ['headers.Relaybox-Hops', { headers: { 'Relaybox-Hops': '1' } }, /named so/],
    ['headers.traceparent', { headers: { traceparent: 'x'.repeat(65) } }, /65/],
    ['delaySeconds', { delaySeconds: -1 }, /-1/],
    ['delaySeconds', { delaySeconds: Number.NaN }, /NaN/],
    ['delaySeconds', { delaySeconds: Number.POSITIVE_INFINITY }, /Infinity/],
    ['delaySeconds', { delaySeconds: 1e12 }, /1000000000000/],
    ['delaySeconds', { delaySeconds: '5' }, /string/],
    ['delaySeconds', { delaySeconds: 5, partitionKey: 'k' }, /partitionKey/],
    ['maxRetries', { maxRetries: -1 }, /-1/],
    ['maxRetries', { maxRetries: 1.5 }, /1\.5/],
    ['maxRetries', { maxRetries: 2 ** 31 }, /2147483648/],
  ];
  const cases = faults.map(([field, fault, actual]) => [titled(fault), field, fault, actual] as const);
  test.each(cases)('%s', (_, field, fault, actual) => {
    const error = refusal({ ...minimal, ...fault });
    expect(error.field).toBe(field);
    expect(error.actual).toMatch(actual);
    expect(error.limit).not.toBe('');
    expect(error.code).toBe('RELAYBOX_MESSAGE_REFUSED');
    expect(error.message.length).toBeLessThan(400);
  });

  test('something that is no message at all', () => {
    expect(refusal(null).field).toBe('message');
    expect(refusal('order').field).toBe('message');
  });
});

const fine: Partial<NewMessage>[] = [
  { id: '0190F8A2-0000-7000-8000-00000000000A' },
  { destination: 'A-z.0_9' },
  { destination: 'a'.repeat(300) },
  { messageType: '😀'.repeat(200) },
  { partitionKey: 'a key that is no group id: ünïcode / and blanks' },
  { headers: { any: 'control \u0001 and \uffff, which travel as JSON', 'x\n': '' } },
  { headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' } },
  { delaySeconds: 0.5 },
  { maxRetries: 0 },
  { payload: null },
];
test.each(fine.map((part) => [titled(part), part] as const))('accepted: %s', (_, part) => {
  expect(() => toOutboxRow({ ...minimal, ...part }, undefined)).not.toThrow();
});

test('an id in capitals is the one that the database will answer', () => {
  const row = toOutboxRow({ ...minimal, id: '0190F8A2-0000-7000-8000-00000000000A' }, undefined);
  expect(row.id).toBe('0190f8a2-0000-7000-8000-00000000000a');
});

describe("a destination's transport decides what fits", () => {
  const bus: DestinationLimits = { type: 'eventbridge' };
  const queue: DestinationLimits = { type: 'sqs' };
  let deep: unknown = 1;
  for (let level = 0; level < 1000; level++) deep = [deep];

  test('a message type for an event bus has 128 characters at most', () => {
    const message = { ...minimal, messageType: 'x'.repeat(129) };
    expect(refusal(message, bus)).toMatchObject({ field: 'messageType', actual: '129 characters' });
    expect(() => toOutboxRow(message, queue)).not.toThrow();
    expect(() => toOutboxRow(message, undefined)).not.toThrow();
  });

  test('a payload for an event bus is 1000 levels deep at most, its envelope included', () => {
    expect(refusal({ ...minimal, payload: deep }, bus).actual).toMatch(/1000 levels/);
    expect(() => toOutboxRow({ ...minimal, payload: (deep as unknown[])[0] }, bus)).not.toThrow();
    expect(() => toOutboxRow({ ...minimal, payload: deep }, queue)).not.toThrow();
  });

  test.each([
    ['SQS', queue, sqsMessageBytes, (row: OutboxRow) => sqsBytes(row)],
    ['EventBridge', bus, eventBridgeEntryBytes, (row: OutboxRow) => eventBridgeBytes(row)],
  ] as const)('%s: at the limit it passes, one byte more is refused', (_, known, limit, measure) => {
    const envelope = measure(toOutboxRow({ ...minimal, payload: '' }, known));
    const fits = { ...minimal, payload: 'x'.repeat(limit - envelope) };
    expect(() => toOutboxRow(fits, known)).not.toThrow();
    expect(refusal({ ...fits, payload: `${fits.payload}x` }, known)).toMatchObject({
      field: 'payload',
      actual: `${limit + 1} bytes`,
    });
  });

  test('an unknown destination gets the smaller limit, and bytes count, not characters', () => {
    const payload = 'ä'.repeat(499_500);
    expect(refusal({ ...minimal, payload }).limit).toMatch(/998000 bytes/);
    expect(() => toOutboxRow({ ...minimal, payload }, queue)).not.toThrow();
  });

  test("a queue's own smaller limit holds", () => {
    const known: DestinationLimits = { type: 'sqs', maxBytes: 10_000 };
    expect(refusal({ ...minimal, payload: 'x'.repeat(10_000) }, known).limit).toMatch(/10000 bytes/);
  });
});

test('what add accepts, the wire takes: the size it counts is never less than what is sent', () => {
  const text = fc.string({ unit: 'binary', maxLength: 40 }).filter((value) => value.isWellFormed());
  fc.assert(
    fc.property(
      fc.record({
        messageType: fc.string({ minLength: 1, maxLength: 100 }),
        correlationId: fc.option(fc.string({ minLength: 1, maxLength: 200 }), { nil: undefined }),
        partitionKey: fc.option(fc.string({ minLength: 1, maxLength: 200 }), { nil: undefined }),
        headers: fc.dictionary(text, text),
        payload: fc.jsonValue(),
      }),
      (fields) => {
        let row: OutboxRow;
        try {
          const present = Object.entries(fields).filter(([, value]) => value !== undefined);
          row = toOutboxRow(
            { ...minimal, ...Object.fromEntries(present) },
            { type: 'eventbridge' },
            {
              'relaybox-hops': '64',
              traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
            },
          );
        } catch (error) {
          if (error instanceof MessageRefused) return;
          throw error;
        }
        const message: OutgoingMessage = { ...row, headers: row.headers ?? {}, replay: 0 };
        const source = 's'.repeat(256);
        expect(toSqs(message, { source, fifo: true }).bytes).toBeLessThanOrEqual(sqsBytes(row));
        expect(toEventBridge(message, { source }).bytes).toBeLessThanOrEqual(eventBridgeBytes(row));
      },
    ),
  );
});
