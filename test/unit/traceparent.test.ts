import { afterEach, describe, expect, test, vi } from 'vitest';
import { eventTraceparent, invocationTraceparent } from '../../shared/publish/traceparent.ts';

const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const root = 'Root=1-5759e988-bd862e3fe1be46a994272793';
const parent = 'Parent=53995c3f42cd8ad8';
const converted = '00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8';

afterEach(() => vi.unstubAllGlobals());

describe('the trace of an invocation, by the id that Lambda has for X-Ray', () => {
  const of = (id: string) => invocationTraceparent({ _X_AMZN_TRACE_ID: id });

  test.each([
    [`${root};${parent};Sampled=1`, `${converted}-01`],
    [`${root};${parent};Sampled=1;Lineage=1:a87bd80c:0`, `${converted}-01`],
    [`Self=1-67891234-12456789abcdef012345678a;${root}; ${parent};Sampled=0`, `${converted}-00`],
    [`Sampled=?;${parent};${root.toUpperCase().replace('ROOT', 'Root')}`, `${converted}-00`],
    [`${root};${parent}`, `${converted}-00`],
  ])('%s is %s', (id, expected) => {
    expect(of(id)).toBe(expected);
  });

  test.each([
    '',
    'nonsense',
    root,
    parent,
    `Root=1-5759e988-bd862e3f;${parent}`,
    `${root};Parent=0000000000000000`,
  ])('%j is none', (id) => {
    expect(of(id)).toBeUndefined();
  });

  test('with several invocations at once in a process it is each one’s own, which no environment can hold', () => {
    vi.stubGlobal('awslambda', { InvokeStore: { getXRayTraceId: () => `${root};${parent};Sampled=1` } });
    expect(invocationTraceparent({ _X_AMZN_TRACE_ID: `${root};Parent=1111111111111111` })).toBe(
      `${converted}-01`,
    );
  });
});

describe('the trace of an HTTP event', () => {
  test.each([
    ['a header', { headers: { traceparent } }],
    ['a header in any case, with blanks', { headers: { TraceParent: ` ${traceparent} `, Host: 'x' } }],
    ['one value of many', { headers: null, multiValueHeaders: { Traceparent: [traceparent] } }],
    ['a version to come', { headers: { traceparent: `${traceparent.replace('00', 'cc')}-what-will-be` } }],
  ])('is taken from %s', (_, event) => {
    expect(eventTraceparent(event)).toBe(traceparent);
  });

  test.each([
    ['no event', undefined],
    ['a text', 'text'],
    ['an event without headers', {}],
    ['headers without one', { headers: {} }],
    ['a number', { headers: { traceparent: 7 } }],
    ['two in one', { headers: { traceparent: `${traceparent}, ${traceparent}` } }],
    ['this version with more behind it', { headers: { traceparent: `${traceparent}-more` } }],
    ['upper case', { headers: { traceparent: traceparent.toUpperCase() } }],
    ['the version that there can’t be', { headers: { traceparent: traceparent.replace('00', 'ff') } }],
    [
      'a trace of zeros',
      { headers: { traceparent: traceparent.replace('4bf92f3577b34da6a3ce929d0e0e4736', '0'.repeat(32)) } },
    ],
    [
      'a parent of zeros',
      { headers: { traceparent: traceparent.replace('00f067aa0ba902b7', '0'.repeat(16)) } },
    ],
    ['another kind of event', { Records: [{ headers: { traceparent } }] }],
  ])('is not taken from %s', (_, event) => {
    expect(eventTraceparent(event)).toBeUndefined();
  });
});
