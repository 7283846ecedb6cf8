import { describe, expect, test } from 'vitest';
import { findingOf, messageOf } from './finding-of.ts';
import { consumed, consumer, deadLetterQueue, fn, healthy, queue, source } from './healthy.ts';

const producer = fn({ id: 'App/Own', role: 'producer', connections: 5, maxConcurrency: 2 });
/** A function with `grantProduce` and a queue of its own, which may be an sqsConsumer. */
const own = (over: Parameters<typeof consumed>[0] = {}) =>
  healthy({ functions: [producer], eventSources: [consumed({ function: producer.id, ...over })] });

describe("a direct consumer's memory outlasts every redelivery", () => {
  test('receipts kept no longer than the longest way fail, with the ways added up', () => {
    expect(
      messageOf(healthy({ receiptRetentionDays: 22 }), 'receipt-retention', consumer.id),
    ).toMatchInlineSnapshot(`
        "  FAIL receipt-retention · App/Relaybox/Emails
            The 22 days for which a consumer's receipts are kept do not exceed 4 days in App/Emails + 14 days in App/IncomingDead + 4 days in the queue again after a redrive = 22 days: a redelivery after them would take effect twice.
            Fix: set maintenance: { receiptRetention: Duration.days(23) } or more, or the queues' retention shorter."
      `);
  });

  test('one day more passes', () => {
    const facts = healthy({ receiptRetentionDays: 23 });
    expect(findingOf(facts, 'receipt-retention', consumer.id).answer).toBe('pass');
  });

  test('of a function that may be something else it is a warning, and says so', () => {
    const found = findingOf({ ...own(), receiptRetentionDays: 22 }, 'receipt-retention', producer.id);
    expect([found.answer, found.message]).toEqual([
      'warning',
      expect.stringContaining('if it is an sqsConsumer'),
    ]);
  });

  test.each([
    ["the queue's", { retentionSeconds: undefined }, 'addConsumer(…, { queueFacts: { retention'],
    [
      "the dead-letter queue's",
      { deadLetterQueue: deadLetterQueue({ retentionSeconds: undefined }) },
      'addConsumer(…, { queueFacts: { deadLetterQueue: { retention }',
    ],
  ])('not knowing %s is unknown', (_, over, prop) => {
    const facts = healthy({ eventSources: [consumed({ queue: queue(over) })] });
    const found = findingOf(facts, 'receipt-retention', consumer.id);
    expect([found.answer, found.prop]).toEqual(['unknown', expect.stringContaining(prop)]);
  });
});

describe('what fails of a batch comes again', () => {
  test("a consumer's event source that does not ask for failures fails", () => {
    const facts = healthy({ eventSources: [consumed({ reportsFailures: false })] });
    expect(messageOf(facts, 'batch-failures', consumer.id)).toMatchInlineSnapshot(`
      "  FAIL batch-failures · App/Relaybox/Emails
          The event source of App/Emails does not ask which records failed: those that an sqsConsumer or createIngest answers are deleted with the others, and lost.
          Fix: set reportBatchItemFailures: true on its SqsEventSource, or let relaybox.addConsumer make the event source."
    `);
  });

  test('that of a function that may be something else is a warning', () => {
    expect(findingOf(own({ reportsFailures: false }), 'batch-failures', producer.id).answer).toBe('warning');
    expect(findingOf(own(), 'batch-failures', producer.id).answer).toBe('pass');
  });

  test('not knowing it is unknown', () => {
    expect(findingOf(own({ reportsFailures: undefined }), 'batch-failures', producer.id).answer).toBe(
      'unknown',
    );
  });
});

describe("a consumer's queue is looked at as an inbox's is", () => {
  test('what its queue does not reveal is asked for where the consumer is added', () => {
    const hidden = {
      id: 'App/Emails',
      visibilitySeconds: undefined,
      encryption: undefined,
      deadLetterQueue: deadLetterQueue({ maxReceiveCount: undefined, fifo: undefined }),
    };
    const facts = healthy({ eventSources: [consumed({ queue: queue(hidden) })] });
    for (const check of ['visibility', 'receive-count', 'dead-letter-queue', 'event-bus-key'] as const) {
      const found = findingOf(facts, check, 'App/Emails');
      expect([found.answer, found.prop], check).toEqual([
        'unknown',
        expect.stringContaining('relaybox.addConsumer(…, { queueFacts: {'),
      ]);
    }
  });

  test('a key that keeps EventBridge from it fails', () => {
    const over = { id: 'App/Emails', encryption: 'kms-managed', fedByEventBridge: true } as const;
    const facts = healthy({ eventSources: [consumed({ queue: queue(over) })] });
    expect(findingOf(facts, 'event-bus-key', 'App/Emails').answer).toBe('fail');
  });
});

describe('two functions on one queue', () => {
  test('fail: each message comes to one of them only', () => {
    const facts = healthy({ eventSources: [source(), consumed({ queue: queue() })] });
    expect(messageOf(facts, 'handlers', 'App/Incoming')).toMatchInlineSnapshot(`
      "  FAIL handlers · App/Incoming
          2 functions take messages from this queue: App/Relaybox/Ingest, App/Relaybox/Emails. Each message comes to one of them only.
          Fix: give each a queue of its own, fed by the same rule or topic."
    `);
  });
});

describe('two consumers of one name', () => {
  test('are a warning: of a message that both get only one does its work', () => {
    const facts = healthy({
      consumers: [
        { function: 'App/A', consumer: '' },
        { function: 'App/B', consumer: '' },
      ],
    });
    expect(messageOf(facts, 'handlers', 'the default consumer')).toMatchInlineSnapshot(`
      "  WARNING handlers · the default consumer
          2 functions consume straight from queues under this name: App/A, App/B. Of a message that two of them get, only the first does its work.
          Fix: give each a consumer of its own in addConsumer, or accept it where no message goes to two of them, or their code names them."
    `);
  });

  test('two of different names are none', () => {
    const facts = healthy({
      consumers: [
        { function: 'App/A', consumer: 'emails' },
        { function: 'App/B', consumer: 'audit' },
      ],
    });
    expect(findingOf(facts, 'handlers', 'consumer audit').answer).toBe('pass');
  });
});
