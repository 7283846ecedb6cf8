import middy from '@middy/core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { BoundOutbox } from '../../shared/lambda/bound-outbox.ts';
import { readSettings, type Settings } from '../../shared/lambda/config.ts';
import { closeConnections } from '../../shared/lambda/connections.ts';
import { inboxHandlerFor } from '../../shared/lambda/inbox-handler.ts';
import { sqsConsumerFor } from '../../shared/lambda/sqs-consumer.ts';
import { transactionalFor } from '../../shared/lambda/transactional.ts';
import type { NewMessage } from '../../shared/message/message.ts';
import { engine } from '../support/engine/engine.ts';
import { lambdaEngine } from '../support/engine/lambda.ts';
import { inboxRow } from '../support/inbox-rows.ts';
import { until } from '../support/until.ts';

const db = await engine.createDatabase();
let settings: Settings;
const context = { getRemainingTimeInMillis: () => 60_000 };

beforeAll(() => {
  vi.stubEnv('POWERTOOLS_LOG_LEVEL', 'SILENT');
  settings = readSettings({ RELAYBOX_DATABASE_URL: db.url });
});
beforeEach(() => db.clear());
afterEach(async () => {
  vi.unstubAllEnvs();
  vi.stubEnv('POWERTOOLS_LOG_LEVEL', 'SILENT');
  await closeConnections();
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await db.drop();
});

const message = (fields: Partial<NewMessage> = {}): NewMessage => ({
  destination: 'events',
  messageType: 'invoice.created',
  payload: 1,
  ...fields,
});

interface Options {
  readonly serializeKeys?: boolean;
  /** Of an HTTP event, or of the message that is handled. */
  readonly traceparent?: string;
}
type Work = (outbox: BoundOutbox) => Promise<unknown>;

/** The three ways in which an application adds messages in a transaction of Relaybox's. */
const ways: Readonly<Record<string, (work: Work, options?: Options) => Promise<unknown>>> = {
  async transactional(work, { traceparent, ...options } = {}) {
    const handler = middy()
      .use(transactionalFor(lambdaEngine)({ settings, poolSize: 3, ...options }))
      .handler(async (_event: unknown, { relaybox }) => void (await work(relaybox.outbox)));
    const event = { headers: { Traceparent: traceparent } };
    return await handler(event, context as Parameters<typeof handler>[1]);
  },
  async inboxHandler(work, { traceparent, ...options } = {}) {
    const messageType = crypto.randomUUID();
    const headers = traceparent === undefined ? {} : { traceparent };
    await db.inbox.ingest([inboxRow({ messageType, headers })]);
    const handler = inboxHandlerFor(lambdaEngine)({ messageType, settings, ...options }, (_, { outbox }) =>
      work(outbox),
    );
    expect(await handler({}, context)).toMatchObject({ handled: 1 });
  },
  async sqsConsumer(work, { traceparent, ...options } = {}) {
    const attributes = { 'relaybox-id': crypto.randomUUID(), 'relaybox-type': 'x', traceparent };
    const messageAttributes = Object.fromEntries(
      Object.entries(attributes).flatMap(([name, stringValue]) =>
        stringValue === undefined ? [] : [[name, { stringValue }]],
      ),
    );
    const handler = sqsConsumerFor(lambdaEngine)({ settings, ...options }, (_, { outbox }) => work(outbox));
    const answer = await handler({ Records: [{ messageId: 'm', body: '{}', messageAttributes }] }, context);
    expect(answer).toEqual({ batchItemFailures: [] });
  },
};

describe.each(Object.entries(ways))('%s', (_, run) => {
  it('with serializeKeys lets the second writer of a key wait for the first one’s commit', async () => {
    const keyed = (payload: number) => message({ partitionKey: 'order-1', payload });
    const added = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const first = run(
      async (outbox) => {
        await outbox.add(keyed(1));
        added.resolve();
        await gate.promise;
      },
      { serializeKeys: true },
    );
    await added.promise;
    const second = run((outbox) => outbox.add(keyed(2)), { serializeKeys: true });
    const both = Promise.all([first, second]);
    // Looked at below; until then an early end of one must not end the test run.
    both.catch(() => undefined);
    try {
      await until(
        () => db.waiting(),
        (sessions) => sessions > 0,
      );
      expect(await db.count('outbox')).toBe(0);
    } finally {
      gate.resolve();
      await both;
    }
    expect((await db.rows('outbox')).map(({ payload }) => payload)).toEqual(['1', '2']);
  });

  const traces = async () => (await db.rows('outbox')).map(({ headers }) => Object(headers)['traceparent']);
  const theirs = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const own = '00-11111111111111111111111111111111-2222222222222222-00';
  const invocation = 'Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1';

  it('takes the trace of what it answers before that of the invocation, and the application’s before both', async () => {
    vi.stubEnv('_X_AMZN_TRACE_ID', invocation);
    const work: Work = (outbox) => outbox.add([message(), message({ headers: { traceparent: own } })]);
    await run(work, { traceparent: theirs });
    expect(await traces()).toEqual([theirs, own]);
  });

  it('takes the trace of the invocation where what it answers has none', async () => {
    vi.stubEnv('_X_AMZN_TRACE_ID', invocation);
    await run((outbox) => outbox.add(message()));
    expect(await traces()).toEqual(['00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01']);
  });
});
