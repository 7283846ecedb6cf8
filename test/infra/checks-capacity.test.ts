import { describe, expect, test } from 'vitest';
import { findingOf, messageOf } from './finding-of.ts';
import { deadLetterQueue, fn, handler, healthy, queue, relay, source, sweep, wakeSource } from './healthy.ts';

const database = {
  id: 'App/Database',
  maxConnections: 84,
  otherConnections: 0,
  pausesAfterSeconds: undefined,
  credentials: 'secret',
} as const;
const ingest = 'App/Relaybox/Ingest';

describe('all pools together fit the database', () => {
  test('too many fail, with each part of the sum', () => {
    const facts = healthy({
      database: { ...database, otherConnections: 40 },
      eventSources: [wakeSource, source({ maxConcurrency: 10 })],
    });
    expect(messageOf(facts, 'connections', 'App/Database')).toMatchInlineSnapshot(`
      "  FAIL connections · App/Database
          All functions together hold up to 76 connections (App/Relaybox/Relay: 3 × 2 = 6; App/Relaybox/Ingest: 10 × 2 = 20; App/Relaybox/OrderPlaced: 1 × 5 = 5; App/Relaybox/Emails: 1 × 5 = 5; other applications: 40 connections), more than 80 % of the 84 that the database allows = 67.
          Fix: lower the concurrency, App/Relaybox/Ingest's first, or take a larger database (it must allow 95), or put an RDS Proxy between and use Database.fromProxy."
    `);
  });

  test('the limit is four fifths of what the server allows', () => {
    const at = (maxConnections: number) =>
      findingOf(healthy({ database: { ...database, maxConnections } }), 'connections', 'App/Database');
    // Relay (2 + 1 sweep) × 2, ingest 2 × 2, handler 1 × 5, consumer 2 × 5.
    expect(at(32).message).toContain('up to 25 connections');
    expect([at(31).answer, at(32).answer]).toEqual(['fail', 'pass']);
  });

  test('a function that may run longer than its interval counts once for each run at a time', () => {
    const facts = healthy({
      functions: [{ ...relay, timeoutSeconds: 150 }],
      schedules: [sweep()],
      eventSources: [],
    });
    expect(findingOf(facts, 'connections', 'App/Database').message).toContain('Relay: 3 × 2 = 6');
  });

  test("what nothing limits counts with the account's concurrency", () => {
    const facts = healthy({ eventSources: [source({ maxConcurrency: 'none' })] });
    const found = findingOf(facts, 'connections', 'App/Database');
    expect(found.answer).toBe('fail');
    expect(found.message).toContain('Ingest: 1000 (no limit: the account’s) × 2 = 2000');
  });

  test('a reservation is the limit, whatever the event source asks for', () => {
    const facts = healthy({
      functions: [fn({ reservedConcurrency: 4 })],
      eventSources: [source({ maxConcurrency: 'none' })],
      schedules: [],
    });
    expect(findingOf(facts, 'connections', 'App/Database').message).toContain('Ingest: 4 × 2 = 8');
  });

  test('not knowing what the database allows is unknown, and says what it must allow', () => {
    const facts = healthy({ database: { ...database, maxConnections: undefined } });
    expect(messageOf(facts, 'connections', 'App/Database')).toMatchInlineSnapshot(`
      "  UNKNOWN connections · App/Database
          How many connections the database allows is not known; all functions together hold up to 25 connections (App/Relaybox/Relay: 3 × 2 = 6; App/Relaybox/Ingest: 2 × 2 = 4; App/Relaybox/OrderPlaced: 1 × 5 = 5; App/Relaybox/Emails: 2 × 5 = 10), which must be at most 80 % of it, so it must allow 32.
          Fix: say so with Database.from…(…, { maxConnections })."
    `);
  });

  test('a producer without a limit is unknown, while the rest is still added up', () => {
    const producer = fn({ id: 'App/PlaceOrder', role: 'producer' });
    const facts = healthy({ functions: [relay, producer] });
    expect(messageOf(facts, 'connections', 'App/PlaceOrder')).toMatchInlineSnapshot(`
      "  UNKNOWN connections · App/PlaceOrder
          How many instances run at once is not known (without a limit up to 1,000 instances), so neither is what they hold of App/Database.
          Fix: say so with relaybox.grantProduce(fn, { maxConcurrency, connections })."
    `);
    expect(findingOf(facts, 'connections', 'App/Database').message).toContain('whose number is known');
  });

  test('a producer whose limit is declared is added up', () => {
    const producer = fn({ id: 'App/PlaceOrder', role: 'producer', maxConcurrency: 100 });
    const facts = healthy({ functions: [relay, producer] });
    const found = findingOf(facts, 'connections', 'App/Database');
    expect(found.answer).toBe('fail');
    expect(found.fix).toContain("App/PlaceOrder's first");
  });
});

describe('throttling does not use up receives', () => {
  test('a receive count below five fails', () => {
    const facts = healthy({
      eventSources: [source({ queue: queue({ deadLetterQueue: deadLetterQueue({ maxReceiveCount: 3 }) }) })],
    });
    expect(messageOf(facts, 'receive-count', 'App/Incoming')).toMatchInlineSnapshot(`
      "  FAIL receive-count · App/Incoming
          maxReceiveCount is 3, less than 5: deliveries that Lambda throttles count as receives, so a burst puts good messages into App/IncomingDead.
          Fix: set maxReceiveCount: 5 or more."
    `);
  });

  test('no dead-letter queue is a warning', () => {
    const facts = healthy({ eventSources: [source({ queue: queue({ deadLetterQueue: 'none' }) })] });
    expect(findingOf(facts, 'receive-count', 'App/Incoming').answer).toBe('warning');
  });

  test('an unknown count is unknown', () => {
    const facts = healthy({ eventSources: [source({ queue: queue({ deadLetterQueue: undefined }) })] });
    const found = findingOf(facts, 'receive-count', 'App/Incoming');
    expect([found.answer, found.prop]).toEqual([
      'unknown',
      'inboxes: [{ …, queueFacts: { deadLetterQueue: { maxReceiveCount } } }]',
    ]);
  });
});

describe('an event source asks for no more than its function may run', () => {
  test('a reservation below it fails', () => {
    const facts = healthy({
      functions: [fn({ reservedConcurrency: 5 })],
      eventSources: [source({ maxConcurrency: 10 })],
    });
    expect(messageOf(facts, 'reserved-concurrency', ingest)).toMatchInlineSnapshot(`
      "  FAIL reserved-concurrency · App/Relaybox/Ingest
          5 instances are reserved, and the event sources ask for 10: what is above it is throttled and counts as received.
          Fix: reserve 10 or more, or set maxConcurrency lower (2 is the least), or reserve nothing."
    `);
  });

  test('a reservation of one can never do', () => {
    const facts = healthy({ functions: [fn({ reservedConcurrency: 1 })] });
    expect(findingOf(facts, 'reserved-concurrency', ingest).message).toContain('no less than 2');
  });

  test('a reservation beside an event source without limit fails', () => {
    const facts = healthy({
      functions: [fn({ reservedConcurrency: 10 })],
      eventSources: [source({ maxConcurrency: 'none' })],
    });
    const found = findingOf(facts, 'reserved-concurrency', ingest);
    expect([found.answer, found.fix]).toEqual([
      'fail',
      'set maxConcurrency: 10 on the event source, or reserve nothing',
    ]);
  });

  test('a reservation that leaves no room for the sweep is a warning', () => {
    const answer = (reservedConcurrency: number) =>
      findingOf(healthy({ functions: [{ ...relay, reservedConcurrency }] }), 'reserved-concurrency', relay.id)
        .answer;
    expect([answer(1), answer(2), answer(3)]).toEqual(['fail', 'warning', 'pass']);
  });

  test('an unknown reservation or limit is unknown', () => {
    const reserved = healthy({ functions: [fn({ reservedConcurrency: undefined })] });
    const limit = healthy({
      functions: [fn({ reservedConcurrency: 5 })],
      eventSources: [source({ maxConcurrency: undefined })],
    });
    expect(findingOf(reserved, 'reserved-concurrency', ingest).answer).toBe('unknown');
    expect(findingOf(limit, 'reserved-concurrency', ingest).answer).toBe('unknown');
  });

  test('a function without an event source is not asked', () => {
    expect(() => findingOf(healthy(), 'reserved-concurrency', handler.id)).toThrow('0 findings');
  });
});
