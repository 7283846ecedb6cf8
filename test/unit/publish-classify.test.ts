import { describe, expect, test } from 'vitest';
import { classifyEntry, classifyError, refusesContent } from '../../shared/publish/classify.ts';

const error = (name: string, status?: number, more: object = {}) =>
  Object.assign(
    new Error(`${name} happened`),
    { name, ...more },
    status && { $metadata: { httpStatusCode: status } },
  );
const network = (code: string) => Object.assign(new Error(`connect ${code}`), { code });

describe('an outage is unavailable, and no message can be blamed for it', () => {
  const cases = [
    network('ECONNREFUSED'),
    network('ENOTFOUND'),
    network('EHOSTUNREACH'),
    network('ERR_TLS_CERT_ALTNAME_INVALID'),
    Object.assign(new AggregateError([network('ECONNREFUSED')]), { code: 'ECONNREFUSED' }),
    new Error('wrapped', { cause: network('ENETUNREACH') }),
    error('ThrottlingException', 400),
    error('RequestThrottled', 403),
    error('OverLimit', 403),
    error('SlowDown', 503),
    error('Whatever', 429),
    error('ExpiredTokenException', 400),
    error('CredentialsProviderError'),
    error('InvalidClientTokenId', 403),
    error('SignatureDoesNotMatch', 403),
    error('AccessDenied', 403),
    error('AccessDeniedException', 400),
    error('QueueDoesNotExist', 400),
    error('AWS.SimpleQueueService.NonExistentQueue', 400),
    error('com.amazonaws.sqs#QueueDoesNotExist', 400),
    error('ResourceNotFoundException', 400),
    error('KmsThrottled', 400),
    error('KMS.DisabledException', 400),
    error('KmsAccessDenied', 400),
  ];
  for (const given of cases) {
    test(`${given.name} ${'code' in given ? given.code : ''}`, () => {
      expect(classifyError(given, 'queue')).toMatchObject({ kind: 'unavailable', laneWide: true });
    });
  }
});

describe("an answer that may be the message's doing is unavailable, but others are tried", () => {
  const cases = [
    error('InternalFailure', 500),
    error('ServiceUnavailable', 503),
    error('RequestTimeout', 408),
    error('TimeoutError'),
    error('AbortError'),
    new DOMException('too late', 'TimeoutError'),
    network('ECONNRESET'),
    network('EPIPE'),
    error('SyntaxError', 200),
    new Error('who knows'),
    'a string',
    undefined,
  ];
  for (const given of cases) {
    test(given === undefined ? 'nothing thrown' : String(given), () => {
      const failure = classifyError(given, 'queue');
      expect(failure.kind).toBe('unavailable');
      expect(failure.laneWide).toBe(undefined);
    });
  }
});

describe('a broker that refuses a call is there: a message is at fault', () => {
  test.each([
    error('BatchRequestTooLong', 400),
    error('InvalidMessageContents', 400),
    error('RequestEntityTooLarge', 413),
    error('ValidationException', 400),
    error('UnknownByUs', 400),
  ])('$name', (given) => {
    expect(classifyError(given, 'queue').kind).toBe('failed');
  });

  test('of a single message it is plain which, where the error is about content', () => {
    expect(refusesContent(error('InvalidMessageContents', 400))).toBe(true);
    expect(refusesContent(error('', 413))).toBe(true);
    expect(refusesContent(error('UnknownByUs', 400))).toBe(false);
    expect(refusesContent(error('QueueDoesNotExist', 400))).toBe(false);
  });
});

const faultOf = (sender: boolean | undefined): string =>
  sender === undefined ? 'fault not said' : sender ? 'the sender’s fault' : 'the broker’s fault';

describe('an entry that failed while the call went through', () => {
  const entries = [
    ['InvalidMessageContents', true, 'rejected'],
    ['InvalidParameterValue', true, 'rejected'],
    ['MalformedDetail', undefined, 'rejected'],
    ['NotAuthorizedForDetailTypeException', undefined, 'rejected'],
    ['InvalidParameterValue', false, 'failed'],
    ['InternalError', true, 'failed'],
    ['RedactionFailure', undefined, 'failed'],
    ['SomethingNew', true, 'failed'],
    ['SomethingNew', undefined, 'failed'],
    [undefined, undefined, 'failed'],
    ['ThrottlingException', undefined, 'unavailable'],
    ['RequestThrottled', true, 'unavailable'],
    ['KmsThrottled', true, 'unavailable'],
    ['AccessDeniedException', undefined, 'unavailable'],
    ['NotAuthorizedForSourceException', undefined, 'unavailable'],
  ] as const;
  const cases = entries.map((entry) => [entry[0] ?? 'no code', faultOf(entry[1]), entry[2], entry] as const);
  test.each(cases)('%s, %s: %s', (_, __, kind, [code, senderFault]) => {
    expect(classifyEntry(code, 'why', senderFault, 'queue').kind).toBe(kind);
  });
});

describe("an entry that failed by the broker's own fault is unavailable, and others are tried", () => {
  const entries = [
    ['InternalError', false],
    ['InternalError', undefined],
    ['InternalFailure', undefined],
    ['InternalException', undefined],
    ['ServiceUnavailable', false],
    ['com.amazonaws.sqs#InternalError', false],
    ['SomethingNew', false],
  ] as const;
  const cases = entries.map((entry) => [entry[0], faultOf(entry[1]), entry] as const);
  test.each(cases)('%s, %s', (_, __, [code, senderFault]) => {
    const failure = classifyEntry(code, 'why', senderFault, 'queue');
    expect(failure.kind).toBe('unavailable');
    expect(failure.laneWide).toBe(undefined);
  });
});

test('the reason names whom the call went to and what was said, and is of a bearable length', () => {
  expect(classifyError(network('ECONNREFUSED'), 'SQS queue q').reason).toBe(
    'SQS queue q: ECONNREFUSED: connect ECONNREFUSED',
  );
  expect(classifyError(error('X', 400, { message: 'm'.repeat(10_000) }), 'q').reason.length).toBeLessThan(
    600,
  );
});
