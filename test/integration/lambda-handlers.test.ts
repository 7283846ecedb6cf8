import { setTimeout as sleep } from 'node:timers/promises';
import middy from '@middy/core';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { type LocalQueue, type LocalSqs, startSqs } from '../../local/sqs.ts';
import { readSettings, type Settings } from '../../shared/lambda/config.ts';
import { closeConnections } from '../../shared/lambda/connections.ts';
import { inboxHandlerFor } from '../../shared/lambda/inbox-handler.ts';
import { ingestFor } from '../../shared/lambda/ingest.ts';
import { sqsConsumerFor } from '../../shared/lambda/sqs-consumer.ts';
import { Rejected, RetryAfter } from '../../shared/message/errors.ts';
import { engine } from '../support/engine/engine.ts';
import { lambdaEngine } from '../support/engine/lambda.ts';
import type { Sql, TestTx } from '../support/engine/test-engine.ts';

const inboxHandler = inboxHandlerFor(lambdaEngine);
const sqsConsumer = sqsConsumerFor(lambdaEngine);
const createIngest = ingestFor(lambdaEngine);
const db = await engine.createDatabase();
let sqs: LocalSqs;
let wakes: LocalQueue;
let relayWakes: LocalQueue;
let settings: Settings;

const Placed = z.object({ orderId: z.string(), at: z.coerce.date() });
const placed = { orderId: '1', at: '2026-11-30T00:00:00.000Z' };

beforeAll(async () => {
  vi.stubEnv('AWS_REGION', 'us-east-1');
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
  sqs = await startSqs();
});
beforeEach(async () => {
  const suffix = Math.random().toString(36).slice(2);
  wakes = await sqs.createQueue(`wakes-${suffix}`);
  relayWakes = await sqs.createQueue(`relay-${suffix}`);
  settings = readSettings({
    RELAYBOX_DATABASE_URL: db.url,
    RELAYBOX_INBOX_SOURCE: 'orders-service',
    RELAYBOX_WAKE_QUEUE_URL: relayWakes.url,
    RELAYBOX_INBOX_WAKE_QUEUE_URLS: JSON.stringify({ 'order.placed': wakes.url }),
    AWS_ENDPOINT_URL_SQS: sqs.endpoint,
  });
  await db.clear();
});
afterEach(closeConnections);
afterAll(async () => {
  vi.unstubAllEnvs();
  await sqs.stop();
  await db.drop();
});

const context = (remainingMs = 20_000) => {
  const end = Date.now() + remainingMs;
  return { awsRequestId: 'r', getRemainingTimeInMillis: () => end - Date.now() };
};

function record(id: string, payload: unknown = placed, messageType = 'order.placed') {
  const attribute = (stringValue: string) => ({ stringValue, dataType: 'String' });
  return {
    messageId: `sqs-${id}`,
    body: typeof payload === 'string' ? payload : JSON.stringify(payload),
    messageAttributes: {
      'relaybox-id': attribute(id),
      'relaybox-type': attribute(messageType),
      'relaybox-source': attribute('somebody'),
    },
  };
}

async function store(...records: ReturnType<typeof record>[]): Promise<void> {
  const answer = await createIngest({ settings })({ Records: records }, context());
  expect(answer).toEqual({ batchItemFailures: [] });
}

async function inbox(): Promise<Record<string, unknown>[]> {
  const rows = await db.rows('inbox');
  return rows.map(({ external_message_id: id, state, retry_count: retries, last_error: error }) => ({
    ...{ id, state, retries, error },
  }));
}

const effects = (): Promise<string[]> => db.effects.all();
const effect = (tx: TestTx, what: string) => db.effects.write(tx, what);
const savepoint = {
  postgres: 'SELECT 1; SAVEPOINT s; SELECT 2; ROLLBACK TO s',
  sqlserver: 'SELECT 1 AS n; SAVE TRANSACTION s; SELECT 2 AS n; ROLLBACK TRANSACTION s',
};
const wake = { Records: [{ messageId: 'w', body: '{"wakeHops":0}' }] };

describe('inboxHandler', () => {
  it('handles what ingest stored: effect, message and Processed mark together, then the relay is woken', async () => {
    await store(record('a'), record('b'));
    const handler = inboxHandler(
      { messageType: 'order.placed', schema: Placed, settings },
      async (message, { tx, outbox, signal, logger }) => {
        expect(signal.aborted).toBe(false);
        logger.debug('handling');
        await effect(tx, `${message.source} ${message.id} ${message.payload.at.getUTCFullYear()}`);
        await outbox.add({ destination: 'events', messageType: 'invoice.created', payload: message.id });
      },
    );
    expect(await handler(wake, context())).toEqual({ batchItemFailures: [] });
    expect((await effects()).sort()).toEqual(['orders-service a 2026', 'orders-service b 2026']);
    expect(await inbox()).toMatchObject([{ state: 2 }, { state: 2 }]);
    const hops = { headers: { 'relaybox-hops': '1' } };
    expect(await db.rows('outbox', {}, { columns: ['headers'] })).toEqual([hops, hops]);
    await vi.waitFor(async () => expect(await sqs.bodies(relayWakes)).not.toEqual([]));
  });

  it('answers a sweep with what it did', async () => {
    await store(record('a'));
    const handler = inboxHandler({ messageType: 'order.placed', settings }, async () => undefined);
    expect(await handler({ source: 'aws.scheduler' }, context())).toMatchObject({ claimed: 1, handled: 1 });
  });

  it('refuses the messages of a queue that is not its wake queue, so that they stay there; what is due is handled', async () => {
    await store(record('a'));
    const handler = inboxHandler({ messageType: 'order.placed', settings }, ({ id }, { tx }) =>
      effect(tx, id),
    );
    const message = { messageId: 'm', body: '{"orderId":"42"}' };
    await expect(handler({ Records: [...wake.Records, message] }, context())).rejects.toThrow(
      /inboxHandler was invoked with 1 SQS record that is no wake.*sqsConsumer/,
    );
    expect(await effects()).toEqual(['a']);
  });

  it('leaves nothing of an attempt that failed, and wakes itself when the retry is due', async () => {
    await store(record('a'));
    await vi.waitFor(async () => expect(await sqs.bodies(wakes)).toHaveLength(1));
    let attempts = 0;
    const handler = inboxHandler(
      { messageType: 'order.placed', settings },
      async (message, { tx, outbox }) => {
        attempts = message.attempt;
        await effect(tx, 'half');
        await outbox.add({ destination: 'events', messageType: 'invoice.created', payload: 1 });
        throw new RetryAfter(40);
      },
    );
    await handler(wake, context());
    expect(attempts).toBe(1);
    expect(await effects()).toEqual([]);
    expect(await inbox()).toMatchObject([{ state: 0, retries: 1 }]);
    await vi.waitFor(async () => expect((await sqs.depth(wakes)).delayed).toBe(1));
    expect(await sqs.bodies(relayWakes)).toEqual([]);
  });

  it('ends at once what is rejected, or does not match the schema', async () => {
    await store(record('a', { ...placed, orderId: 'bad' }), record('b', { orderId: 7 }));
    const handler = inboxHandler(
      { messageType: 'order.placed', schema: Placed, settings },
      async ({ payload }) => {
        throw new Rejected(`no such order: ${payload.orderId}`);
      },
    );
    await handler({}, context());
    expect(await inbox()).toMatchObject([
      { id: 'a', state: 3, error: expect.stringContaining('no such order: bad') },
      { id: 'b', state: 3, error: expect.stringContaining("does not match the handler's schema at orderId") },
    ]);
  });

  it('refuses a handler that ends the transaction, or leaves a statement running', async () => {
    await store(record('a'), record('b'));
    let late: Promise<unknown> = Promise.resolve();
    const handler = inboxHandler(
      { messageType: 'order.placed', maxRetries: 0, settings },
      async (message, { tx }) => {
        await effect(tx, message.id);
        if (message.id === 'a') await tx.query('COMMIT', []);
        else late = Promise.all([db.dawdle(tx, 0.2), effect(tx, 'late')]).catch((error) => error);
      },
    );
    await handler({}, context());
    expect(await inbox()).toMatchObject([
      { id: 'a', state: 3, error: expect.stringContaining('COMMIT was refused') },
      { id: 'b', state: 3, error: expect.stringContaining('await every statement') },
    ]);
    await expect(late).resolves.toBeInstanceOf(Error);
    expect(await effects()).toEqual([]);
  });

  const own = "INSERT INTO effects (id) VALUES ('own')";
  it.each<[string, Sql]>([
    ['a COMMIT', { postgres: `${own}; COMMIT`, sqlserver: `${own}; COMMIT` }],
    [
      'a COMMIT and a BEGIN',
      { postgres: `${own}; COMMIT; BEGIN`, sqlserver: `${own}; COMMIT; BEGIN TRANSACTION` },
    ],
    [
      'a COMMIT that begins the next',
      { postgres: `${own}; COMMIT AND CHAIN`, sqlserver: `${own}; COMMIT WORK; BEGIN TRAN` },
    ],
    [
      'a COMMIT, a BEGIN and an error',
      {
        postgres: `${own}; COMMIT; BEGIN; SELECT 1/0`,
        sqlserver: `${own}; COMMIT; BEGIN TRANSACTION; SELECT 1/0 AS n`,
      },
    ],
    [
      'a COMMIT and an error',
      { postgres: `${own}; COMMIT; SELECT no_such()`, sqlserver: `${own}; COMMIT; SELECT 1 FROM dbo.NoSuch` },
    ],
  ])('a handler that ends its transaction by %s goes no further, and is not tried again', async (_, text) => {
    await store(record('a'), record('b'));
    const seen: unknown[] = [];
    const handler = inboxHandler(
      { messageType: 'order.placed', retry: { firstSeconds: 0, maxSeconds: 0 }, settings },
      async (message, { tx, outbox }) => {
        await effect(tx, message.id);
        await db.sqlWithin(tx, message.id === 'a' ? text : savepoint).catch((error) => seen.push(error));
        await effect(tx, 'after').catch((error) => seen.push(error));
        await outbox
          .add({ destination: 'events', messageType: 'x', payload: 1 })
          .catch((error) => seen.push(error));
      },
    );
    await handler({}, context());
    expect(await inbox()).toMatchObject([
      { id: 'a', state: 3, error: expect.stringContaining('the transaction was ended from inside by') },
      { id: 'b', state: 2 },
    ]);
    expect(seen.map((error) => (error as Error).name)).toEqual(Array(3).fill('TransactionError'));
    expect((await effects()).sort()).toEqual(['a', 'after', 'b', 'own']);
    expect(await db.count('outbox')).toBe(1);
  });

  it('a handler that ended its transaction itself and then throws, or hangs, is not tried again either', async () => {
    await store(record('throws'), record('hangs'));
    const handler = inboxHandler(
      { messageType: 'order.placed', retry: { firstSeconds: 0, maxSeconds: 0 }, settings },
      async (message, { tx }) => {
        const text = `INSERT INTO effects (id) VALUES ('${message.id}'); COMMIT`;
        await db.sqlWithin(tx, { postgres: text, sqlserver: text }).catch(() => undefined);
        if (message.id === 'hangs') await new Promise(() => undefined);
        throw new Error('oops');
      },
    );
    await handler({}, context(2_500));
    expect(await inbox()).toMatchObject([{ state: 3 }, { state: 3 }]);
    expect((await effects()).sort()).toEqual(['hangs', 'throws']);
  });

  it('gives back in time what it can not finish, and goes on at the next wake', async () => {
    await store(...Array.from({ length: 10 }, (_, index) => record(`m${index}`)));
    const handler = inboxHandler(
      { messageType: 'order.placed', parallelism: 1, settings },
      async (message, { tx }) => {
        await effect(tx, message.id);
        await sleep(300);
      },
    );
    const report = await handler({}, context(3_000));
    expect(report).toMatchObject({ workLeft: true });
    const done = (await effects()).length;
    expect(done).toBeGreaterThan(0);
    expect(done).toBeLessThan(10);
    expect((await inbox()).filter(({ state }) => state === 0)).toMatchObject(
      Array.from({ length: 10 - done }, () => ({ retries: 0 })),
    );
    await vi.waitFor(async () => expect(await sqs.bodies(wakes)).not.toEqual([]));
    await handler(wake, context());
    expect(new Set(await effects()).size).toBe(10);
  });

  it('can stand behind middy', async () => {
    await store(record('a'));
    const seen = vi.fn();
    const handler = middy<SQSEvent>()
      .use({ before: seen })
      .handler(inboxHandler({ messageType: 'order.placed', settings }, async (_, { tx }) => effect(tx, 'x')));
    await handler(wake as SQSEvent, context() as never);
    expect(seen).toHaveBeenCalledTimes(1);
    expect(await effects()).toEqual(['x']);
  });
});

describe('sqsConsumer', () => {
  it('handles each message once, acknowledging duplicates without running', async () => {
    const handler = sqsConsumer(
      { consumer: 'emails', schema: Placed, settings },
      async (message, { tx, outbox }) => {
        await effect(tx, `${message.source} ${message.id} ${message.payload.orderId}`);
        await outbox.add({ destination: 'events', messageType: 'email.sent', payload: 1 });
      },
    );
    const event = { Records: [record('a'), record('b')] };
    expect(await handler(event, context())).toEqual({ batchItemFailures: [] });
    expect(await handler({ Records: [record('b'), record('c')] }, context())).toEqual({
      batchItemFailures: [],
    });
    expect((await effects()).sort()).toEqual([
      'orders-service a 1',
      'orders-service b 1',
      'orders-service c 1',
    ]);
    await vi.waitFor(async () => expect(await sqs.bodies(relayWakes)).not.toEqual([]));
  });

  it('reports what failed, and nothing else', async () => {
    const handler = sqsConsumer({ consumer: 'emails', settings }, async (message, { tx }) => {
      await effect(tx, message.id);
      if (message.id === 'b') throw new Error('no');
    });
    const event = { Records: [record('a'), record('b'), record('c')] };
    expect(await handler(event, context())).toEqual({ batchItemFailures: [{ itemIdentifier: 'sqs-b' }] });
    expect((await effects()).sort()).toEqual(['a', 'c']);
  });

  it('can stand behind middy, and says what event it needs', async () => {
    const consumer = sqsConsumer({ consumer: 'emails', settings }, async () => undefined);
    const handler = middy<SQSEvent, SQSBatchResponse>().handler(consumer);
    expect(await handler({ Records: [record('a')] } as never, context() as never)).toEqual({
      batchItemFailures: [],
    });
    await expect(consumer({}, context())).rejects.toThrow(/records of an SQS queue/);
  });
});
