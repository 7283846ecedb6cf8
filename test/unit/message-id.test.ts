import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MessageRefused } from '../../shared/message/errors.ts';
import { isUuid, messageId, newId } from '../../shared/message/id.ts';

test('once: a business key always gives the same id', () => {
  expect(messageId('invoice', 4711, 'created')).toBe(messageId('invoice', 4711, 'created'));
  // Stored ids of earlier releases must stay what they are.
  expect(messageId('invoice', 4711, 'created')).toBe(messageId('invoice', '4711', 'created'));
  expect(messageId('a', 'bc')).toMatchInlineSnapshot(`"21cf9da8-61fa-8199-bd78-2f25896b1967"`);
});

test('once: two different keys never give one id, wherever the parts are cut', () => {
  expect(messageId('a', 'bc')).not.toBe(messageId('ab', 'c'));
  const parts = fc.array(fc.string({ maxLength: 4 }), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(parts, parts, (one, other) => {
      fc.pre(JSON.stringify(one) !== JSON.stringify(other));
      return messageId(...one) !== messageId(...other);
    }),
  );
});

test('a key without a fixed meaning is refused', () => {
  expect(() => messageId()).toThrow(MessageRefused);
  expect(() => messageId('order', Number.NaN)).toThrow(MessageRefused);
  expect(() => messageId('order', '\ud800')).toThrow(MessageRefused);
});

test('ids are UUIDs of version 8 and 7', () => {
  expect(messageId('a')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(newId()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(isUuid('0190F8A2-0000-7000-8000-000000000000')).toBe(true);
  for (const text of ['', '0190f8a2', '{0190f8a2-0000-7000-8000-000000000000}', `${newId()} `]) {
    expect(isUuid(text)).toBe(false);
  }
});

test('new ids only grow, within a millisecond and when the clock is set back', () => {
  const now = Date.now() + 1_000;
  const ids = [
    ...Array.from({ length: 10_000 }, () => newId(now)),
    newId(now - 3_600_000),
    newId(now + 60_000),
    newId(now),
  ];
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toEqual([...ids].sort());
});

test('a new id begins with the time in milliseconds', () => {
  const later = Date.now() + 3_600_000;
  expect(Number.parseInt(newId(later).replaceAll('-', '').slice(0, 12), 16)).toBe(later);
});
