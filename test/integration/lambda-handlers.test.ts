import { setTimeout as sleep } from 'node:timers/promises';
import middy from '@middy/core';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, expectTypeOf, it, vi } from 'vitest';
import { z } from 'zod';
import { type LocalQueue, type LocalSqs, startSqs } from '../../local/sqs.ts';
import { readSettings, type Settings } from '../../shared/lambda/config.ts';
import {
  type BoundOutbox,
  closeConnections,
  createIngest,
  type HandlerContext,
  inboxHandler,
  Rejected,
  RetryAfter,
  sqsConsumer,
} from '../../shared/lambda/postgres/index.ts';
import type { Message } from '../../shared/message/message.ts';
import { createMigratedDatabase, type MigratedDatabase } from '../support/migrated.ts';

let database: MigratedDatabase;
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
  [database, sqs] = await Promise.all([createMigratedDatabase(), startSqs()]);
  await database.pool.query('CREATE TABLE effects (id serial PRIMARY KEY, what text)');
});
beforeEach(async () => {
  const suffix = Math.random().toString(36).slice(2);
  wakes = await sqs.createQueue(`wakes-${suffix}`);
  relayWakes = await sqs.createQueue(`relay-${suffix}`);
  settings = readSettings({
    RELAYBOX_DATABASE_URL: database.url,
    RELAYBOX_INBOX_SOURCE: 'orders-service',
    RELAYBOX_WAKE_QUEUE_URL: relayWakes.url,
    RELAYBOX_INBOX_WAKE_QUEUE_URLS: JSON.stringify({ 'order.placed': wakes.url }),
    AWS_ENDPOINT_URL_SQS: sqs.endpoint,
  });
  await database.pool.query('TRUNCATE effects, inbox_messages, inbox_keys, inbox_receipts, outbox_messages');
});
afterEach(closeConnections);
afterAll(async () => {
  vi.unstubAllEnvs();
  await sqs.stop();
  await database.drop();
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

async function effects(): Promise<string[]> {
  const { rows } = await database.pool.query<{ what: string }>('SELECT what FROM effects ORDER BY id');
  return rows.map(({ what }) => what);
}

async function inbox(): Promise<Record<string, unknown>[]> {
  const { rows } = await database.pool.query(
    'SELECT external_message_id AS id, state, retry_count AS retries, last_error AS error FROM inbox_messages ORDER BY sequence',
  );
  return rows;
}

const effect = (tx: pg.PoolClient, what: string) =>
  tx.query('INSERT INTO effects (what) VALUES ($1)', [what]);
const wake = { Records: [{ messageId: 'w', body: '{"wakeHops":0}' }] };

describe('inboxHandler', () => {
  it('handles what ingest stored: effect, message and Processed mark together, then the relay is woken', async () => {
    await store(record('a'), record('b'));
    const handler = inboxHandler(
      { messageType: 'order.placed', schema: Placed, settings },
      async (message, { tx, outbox, signal, logger }) => {
        expectTypeOf(message.payload).toEqualTypeOf<{ orderId: string; at: Date }>();
        expectTypeOf(tx).toEqualTypeOf<pg.PoolClient>();
        expectTypeOf(outbox).toEqualTypeOf<BoundOutbox>();
        expect(signal.aborted).toBe(false);
        logger.debug('handling');
        await effect(tx, `${message.source} ${message.id} ${message.payload.at.getUTCFullYear()}`);
        await outbox.add({ destination: 'events', messageType: 'invoice.created', payload: message.id });
      },
    );
    expect(await handler(wake, context())).toEqual({ batchItemFailures: [] });
    expect((await effects()).sort()).toEqual(['orders-service a 2026', 'orders-service b 2026']);
    expect(await inbox()).toMatchObject([{ state: 2 }, { state: 2 }]);
    const { rows } = await database.pool.query(
      "SELECT headers->>'relaybox-hops' AS hops FROM outbox_messages",
    );
    expect(rows).toEqual([{ hops: '1' }, { hops: '1' }]);
    await vi.waitFor(async () => expect(await sqs.bodies(relayWakes)).not.toEqual([]));
  });

  it('answers a sweep with what it did', async () => {
    await store(record('a'));
    const handler = inboxHandler({ messageType: 'order.placed', settings }, async () => undefined);
    expect(await handler({ source: 'aws.scheduler' }, context())).toMatchObject({ claimed: 1, handled: 1 });
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
    await store(record('a', 'COMMIT'), record('b', 'SELECT pg_sleep(0.2)'));
    let late: Promise<unknown> = Promise.resolve();
    const handler = inboxHandler(
      { messageType: 'order.placed', raw: true, maxRetries: 0, settings },
      async (message: Message<string>, { tx }) => {
        await effect(tx, message.id);
        if (message.id === 'a') await tx.query(message.payload);
        else late = Promise.all([tx.query(message.payload), effect(tx, 'late')]).catch((error) => error);
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

  it.each([
    ["INSERT INTO effects (what) VALUES ('own'); COMMIT", ['own']],
    ["INSERT INTO effects (what) VALUES ('own'); COMMIT; BEGIN", ['own']],
    ["INSERT INTO effects (what) VALUES ('own'); COMMIT AND CHAIN", ['own']],
    ["INSERT INTO effects (what) VALUES ('own'); COMMIT; BEGIN; SELECT 1/0", ['own']],
    ["INSERT INTO effects (what) VALUES ('own'); COMMIT; SELECT no_such()", ['own']],
    ["INSERT INTO effects (what) VALUES ('own'); ROLLBACK", []],
    ['SELECT 1; ROLLBACK; BEGIN', []],
    ['SELECT 1; ROLLBACK AND CHAIN', []],
  ])(
    'a handler that ends its transaction by %j goes no further, and is not tried again',
    async (text, left) => {
      await store(record('a', text), record('b', 'SELECT 1; SAVEPOINT s; SELECT 2; ROLLBACK TO s'));
      const seen: unknown[] = [];
      const handler = inboxHandler(
        { messageType: 'order.placed', raw: true, retry: { firstSeconds: 0, maxSeconds: 0 }, settings },
        async (message: Message<string>, { tx, outbox }) => {
          await effect(tx, message.id);
          await tx.query(message.payload).catch((error) => seen.push(error));
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
      const own = left.length === 0 ? [] : ['a', ...left];
      expect((await effects()).sort()).toEqual([...own, 'after', 'b'].sort());
      const { rows } = await database.pool.query('SELECT FROM outbox_messages');
      expect(rows).toHaveLength(1);
    },
  );

  it('a handler that ended its transaction itself and then throws, or hangs, is not tried again either', async () => {
    await store(record('throws'), record('hangs'));
    const handler = inboxHandler(
      { messageType: 'order.placed', retry: { firstSeconds: 0, maxSeconds: 0 }, settings },
      async (message, { tx }) => {
        await tx.query(`INSERT INTO effects (what) VALUES ('${message.id}'); COMMIT`).catch(() => undefined);
        if (message.id === 'hangs') await new Promise(() => undefined);
        throw new Error('oops');
      },
    );
    await handler({}, context(2_500));
    expect(await inbox()).toMatchObject([{ state: 3 }, { state: 3 }]);
    expect((await effects()).sort()).toEqual(['hangs', 'throws']);
  });

  it.each([
    "SET app.tenant = 'a'",
    "SELECT set_config('app.tenant', 'a', false)",
    'SET statement_timeout = 1; SET LOCAL statement_timeout = 5000',
    'SET ROLE pg_monitor; SET LOCAL ROLE none',
  ])('what a handler did by %j is gone for the next user of its connection', async (text) => {
    await store(record('a'), record('b'));
    const seen: unknown[] = [];
    const handler = inboxHandler(
      { messageType: 'order.placed', parallelism: 1, batchSize: 1, settings },
      async (message, { tx }) => {
        const { rows } = await tx.query(
          `SELECT coalesce(current_setting('app.tenant', true), '') AS tenant, current_user = session_user AS self,
             pg_backend_pid() AS pid`,
        );
        seen.push(rows[0]);
        if (message.id === 'a') await tx.query(text);
      },
    );
    expect(await handler({}, context())).toMatchObject({ handled: 2, unavailable: undefined });
    expect(seen).toMatchObject(Array(2).fill({ tenant: '', self: true }));
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

  it('names the type of a handler that stands by itself', () => {
    async function write(message: Message<{ orderId: string }>, { tx }: HandlerContext): Promise<void> {
      await effect(tx, message.payload.orderId);
    }
    inboxHandler({ messageType: 'order.placed', schema: Placed, settings }, write);
    inboxHandler({ messageType: 'order.placed', settings }, write);
    // @ts-expect-error the schema makes something else than the handler takes
    inboxHandler({ messageType: 'order.placed', schema: z.object({ orderId: z.number() }), settings }, write);
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
