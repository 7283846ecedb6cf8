import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MessageRefused } from '../../shared/message/errors.ts';
import { nesting, serialisePayload } from '../../shared/message/serialise.ts';
import { characters, firstUnsendable, storable, unsendable, unstorable } from '../../shared/message/text.ts';
import { titled } from '../support/titled.ts';

describe('a payload as JSON text', () => {
  test('is sendable on every transport, and parses to what it was', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const text = serialisePayload(value);
        expect(unsendable(text)).toBe(false);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  const unusual = ['\ufffe', '\uffff', '\ud800', '\udc00x', '\0', '\u0001', '\u007f', '😀', 'ﷺ'];
  test.each(unusual.map((character) => [titled(character), character] as const))(
    'carries the character %s in keys and values',
    (_, character) => {
      const value = { [character]: [character, `a${character}b`] };
      const text = serialisePayload(value);
      expect(unsendable(text) || unstorable(text)).toBe(false);
      expect(JSON.parse(text)).toEqual(value);
    },
  );

  test('a bigint is its digits in a string, a Date ISO text', () => {
    const at = new Date('2026-11-30T12:00:00.123Z');
    expect(serialisePayload({ id: 2n ** 64n, at })).toBe(
      '{"id":"18446744073709551616","at":"2026-11-30T12:00:00.123Z"}',
    );
  });

  test('null, texts and numbers are payloads too; optional properties may be undefined', () => {
    expect(
      [null, 'a', 1, false, new Number(2), { a: undefined, b() {} }, new Uint8Array(1)].map(serialisePayload),
    ).toEqual(['null', '"a"', '1', 'false', '2', '{}', '{"0":0}']);
  });

  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;
  let deep: unknown = 1;
  for (let level = 0; level < 200_000; level++) deep = [deep];

  test.each([
    ['undefined', undefined, 'payload', /undefined/],
    ['a function', () => 1, 'payload', /function/],
    ['a symbol', Symbol('a'), 'payload', /symbol/],
    ['a cycle', cyclic, 'payload', /refers to itself/],
    ['a nesting that overflows', deep, 'payload', /nested too deeply/],
    ['a Map', { lines: new Map([[1, 2]]) }, 'payload.lines', /a Map/],
    ['a Set', [{ a: 1 }, [new Set()]], 'payload[1][0]', /a Set/],
    ['NaN', { total: Number.NaN }, 'payload.total', /NaN/],
    ['a boxed NaN', { 'a b': new Number(Number.NaN) }, 'payload["a b"]', /NaN/],
    ['Infinity', Number.POSITIVE_INFINITY, 'payload', /Infinity/],
    ['an invalid Date', { at: new Date(Number.NaN) }, 'payload.at', /an invalid Date/],
    [
      'undefined in an array',
      { lines: [{ a: [1] }, { a: [1, undefined] }] },
      'payload.lines[1].a[1]',
      /undef/,
    ],
    ['a hole in an array', Object.assign([1], { 2: 3 }), 'payload[1]', /undefined/],
    ['a function in an array', [() => 1], 'payload[0]', /a function/],
    ['a symbol in an array', [Symbol('a')], 'payload[0]', /a symbol/],
    ['a promise', { order: Promise.resolve(1) }, 'payload.order', /await/],
    ['an Error', { cause: new TypeError('x') }, 'payload.cause', /an Error/],
    ['fetch headers', { headers: new Headers({ a: 'b' }) }, 'payload.headers', /a Headers/],
    [
      'one that throws',
      {
        toJSON() {
          throw new RangeError('secret');
        },
      },
      'payload',
      /payload/,
    ],
  ])('%s is refused with its place, not lost in silence', (_, payload, field, reason) => {
    let error: unknown;
    try {
      serialisePayload(payload);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(MessageRefused);
    expect((error as MessageRefused).field).toBe(field);
    expect((error as MessageRefused).message).toMatch(reason);
    expect((error as MessageRefused).message).not.toMatch(/secret/);
  });
});

test('nesting counts levels, not brackets in texts', () => {
  expect(nesting('1')).toBe(0);
  expect(nesting(JSON.stringify({ a: [{ b: '[[[{"\\' }], c: {} }))).toBe(3);
});

test('characters are counted as PostgreSQL counts them', () => {
  expect(characters('aé😀')).toBe(3);
});

test('any error text can be stored, and is cut without splitting a character', () => {
  expect(storable('a\0b\ud800c')).toBe('a\ufffdb\ufffdc');
  expect(storable('😀😀😀', 2)).toBe('😀😀');
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(20), (text, length) => {
      const kept = storable(text, length);
      expect(unstorable(kept)).toBe(false);
      expect(characters(kept)).toBeLessThanOrEqual(length);
    }),
  );
  expect(storable('x'.repeat(5000))).toHaveLength(4000);
});

test('the first character that SQS refuses is named', () => {
  expect(firstUnsendable('ab\u0007')).toBe('U+0007');
  expect(firstUnsendable('\uffff')).toBe('U+FFFF');
  expect(firstUnsendable('\ud83d')).toBe('U+D83D');
});
