import { describe, expect, test } from 'vitest';
import { findingOf, messageOf } from './finding-of.ts';
import { deadLetterQueue, fn, handler, healthy, inbox, queue, relay, source, sweep } from './healthy.ts';

describe('a lease outlasts whoever holds it', () => {
  test("a message's lease shorter than the timeout and its margin fails, with both figures", () => {
    const lease = { kind: 'invocation', minimumSeconds: 30, marginSeconds: 2 } as const;
    const facts = healthy({ functions: [{ ...handler, timeoutSeconds: 60, lease }] });
    expect(messageOf(facts, 'lease', handler.id)).toMatchInlineSnapshot(`
      "  FAIL lease · App/Relaybox/OrderPlaced
          The lease on a message is 62 s, shorter than the function's timeout of 60 s + a margin of 10 s = 70 s.
          Fix: set RELAYBOX_LEASE_MARGIN_SECONDS to 10 or more in its environment, or RELAYBOX_MESSAGE_LEASE_SECONDS to 70 or more, or its timeout to Duration.seconds(52) or less."
    `);
  });

  test('the minimum covers a short function whatever the margin', () => {
    const lease = { kind: 'invocation', minimumSeconds: 120, marginSeconds: 1 } as const;
    const at = (timeoutSeconds: number) =>
      findingOf(healthy({ functions: [{ ...handler, timeoutSeconds, lease }] }), 'lease', handler.id).answer;
    expect([at(110), at(111)]).toEqual(['pass', 'fail']);
  });

  test("a relay's lease shorter than one round of publishing fails", () => {
    const facts = healthy({ functions: [{ ...relay, lease: { kind: 'extended', seconds: 15 } }] });
    expect(messageOf(facts, 'lease', relay.id)).toMatchInlineSnapshot(`
      "  FAIL lease · App/Relaybox/Relay
          The lease on a bucket is 15 s, shorter than one round of publishing of at most 16 s + a margin of 10 s = 26 s.
          Fix: set relay: { lease: Duration.seconds(26) } or more."
    `);
  });

  test('a function without a known timeout is unknown', () => {
    const facts = healthy({ functions: [{ ...handler, timeoutSeconds: undefined }] });
    expect(findingOf(facts, 'lease', handler.id).answer).toBe('unknown');
  });
});

describe('visibility is six times the timeout', () => {
  test('less fails, with the sum and both ways out', () => {
    const facts = healthy({
      eventSources: [source({ queue: queue({ visibilitySeconds: 300 }), batchingWindowSeconds: 5 })],
    });
    expect(messageOf(facts, 'visibility', 'App/Incoming')).toMatchInlineSnapshot(`
      "  FAIL visibility · App/Incoming
          The visibility timeout is 300 s, shorter than 6 × the timeout of App/Relaybox/Ingest (60 s) + the batching window (5 s) = 365 s.
          Fix: set visibilityTimeout: Duration.seconds(365) on the queue, or the function's timeout to Duration.seconds(49) or less."
    `);
  });

  test('exactly six times and the window passes', () => {
    const visible = (visibilitySeconds: number) =>
      findingOf(
        healthy({
          eventSources: [source({ queue: queue({ visibilitySeconds }), batchingWindowSeconds: 5 })],
        }),
        'visibility',
        'App/Incoming',
      ).answer;
    expect([visible(364), visible(365)]).toEqual(['fail', 'pass']);
  });

  test('less than the timeout itself says that Lambda refuses it', () => {
    const facts = healthy({ eventSources: [source({ queue: queue({ visibilitySeconds: 30 }) })] });
    expect(messageOf(facts, 'visibility', 'App/Incoming')).toContain(
      'shorter than the timeout itself, which Lambda refuses',
    );
  });

  test("an imported queue's is unknown, and the prop is named", () => {
    const facts = healthy({ eventSources: [source({ queue: queue({ visibilitySeconds: undefined }) })] });
    expect(messageOf(facts, 'visibility', 'App/Incoming')).toMatchInlineSnapshot(`
      "  UNKNOWN visibility · App/Incoming
          The visibility timeout is not known; it must be at least 6 × the timeout of App/Relaybox/Ingest (60 s) = 360 s.
          Fix: say so with inboxes: [{ …, queueFacts: { visibilityTimeout } }]."
    `);
  });
});

describe("the inbox's memory outlasts every redelivery", () => {
  test('retention at or below the longest way fails, with the ways added up', () => {
    const facts = healthy({ inboxes: [inbox({ retentionDays: 22 })] });
    expect(messageOf(facts, 'inbox-retention', 'inbox of payments')).toMatchInlineSnapshot(`
      "  FAIL inbox-retention · inbox of payments
          The inbox's retention of 22 days does not exceed 4 days in App/Incoming + 14 days in App/IncomingDead + 4 days in the queue again after a redrive = 22 days: a redelivery after it would take effect twice.
          Fix: set maintenance: { inboxRetention: Duration.days(23) } or more, or the queues' retention shorter."
    `);
  });

  test('one day more passes', () => {
    const facts = healthy({ inboxes: [inbox({ retentionDays: 23, consumer: 'emails' })] });
    expect(findingOf(facts, 'inbox-retention', 'inbox of payments for emails').answer).toBe('pass');
  });

  test('a queue without a dead-letter queue counts alone', () => {
    const at = (retentionDays: number) =>
      findingOf(
        healthy({ inboxes: [inbox({ retentionDays, queue: queue({ deadLetterQueue: 'none' }) })] }),
        'inbox-retention',
        'inbox of payments',
      ).answer;
    expect([at(4), at(5)]).toEqual(['fail', 'pass']);
  });

  test.each([
    ["the queue's", queue({ retentionSeconds: undefined }), 'retention'],
    ['whether there is a dead-letter queue', queue({ deadLetterQueue: undefined }), 'deadLetterQueue'],
    [
      "the dead-letter queue's",
      queue({ deadLetterQueue: deadLetterQueue({ retentionSeconds: undefined }) }),
      'deadLetterQueue: { retention }',
    ],
  ])('not knowing %s is unknown', (_, unknown, prop) => {
    const found = findingOf(
      healthy({ inboxes: [inbox({ queue: unknown })] }),
      'inbox-retention',
      'inbox of payments',
    );
    expect(found.answer).toBe('unknown');
    expect(found.prop).toContain(prop);
  });
});

describe('a database that pauses', () => {
  const found = (intervalSeconds: number, pausesAfterSeconds: number | undefined) =>
    findingOf(
      healthy({
        schedules: [sweep({ intervalSeconds })],
        database: { ...healthy().database, pausesAfterSeconds },
      }),
      'auto-pause',
      'App/Database',
    );

  test('and is swept as often as that is a warning: it never pauses', () => {
    expect(found(300, 300)).toMatchObject({
      answer: 'warning',
      message:
        'It pauses after 300 s without a connection, and 1 sweep runs at least as often (App/Relaybox/Relay each 300 s), so that it never does',
    });
    expect(found(301, 300).answer).toBe('pass');
  });

  test('is no concern of one that does not', () => {
    expect(found(60, undefined).answer).toBe('pass');
  });
});

describe('a sweep that comes late does not come at all', () => {
  test("retries of the schedule, its patience and the function's own retries fail in one message", () => {
    const facts = healthy({
      functions: [fn({ id: relay.id, asyncRetryAttempts: 2 })],
      schedules: [sweep({ retryAttempts: 185, maxEventAgeSeconds: 86_400 })],
    });
    expect(messageOf(facts, 'sweep-retries', 'App/Relaybox/Sweep')).toMatchInlineSnapshot(`
      "  FAIL sweep-retries · App/Relaybox/Sweep
          With one sweep every 60 s, the schedule retries a sweep 185 times, and the schedule keeps a sweep for 1 day, and App/Relaybox/Relay is invoked 2 times more after an error: after an outage stale sweeps pile up.
          Fix: set retryAttempts: 0 on the schedule, maxEventAge: Duration.seconds(60) on the schedule, retryAttempts: 0 on the function."
    `);
  });

  test('a sparse sweep may wait as long as its interval', () => {
    const answer = (maxEventAgeSeconds: number) =>
      findingOf(
        healthy({ schedules: [sweep({ intervalSeconds: 900, maxEventAgeSeconds })] }),
        'sweep-retries',
        'App/Relaybox/Sweep',
      ).answer;
    expect([answer(900), answer(901)]).toEqual(['pass', 'fail']);
  });

  test('what Lambda throttles and keeps for hours is a warning', () => {
    const facts = healthy({ functions: [fn({ id: relay.id, asyncMaxEventAgeSeconds: 21_600 })] });
    const found = findingOf(facts, 'sweep-retries', 'App/Relaybox/Sweep');
    expect([found.answer, found.message, found.fix]).toEqual([
      'warning',
      expect.stringContaining("Lambda keeps for 21600 s what it can't run now of App/Relaybox/Relay"),
      'set maxEventAge: Duration.seconds(60) on the function',
    ]);
  });

  test('a function that is not ours to see is unknown', () => {
    const facts = healthy({ schedules: [sweep({ function: 'Elsewhere' })] });
    expect(findingOf(facts, 'sweep-retries', 'App/Relaybox/Sweep').answer).toBe('unknown');
  });
});
