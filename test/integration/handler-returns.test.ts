import type { SQSBatchResponse } from 'aws-lambda';
import type mssql from 'mssql';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, expectTypeOf, it, vi } from 'vitest';
import { readSettings, type Settings } from '../../shared/lambda/config.ts';
import { closeConnections } from '../../shared/lambda/connections.ts';
import { inboxHandlerFor } from '../../shared/lambda/inbox-handler.ts';
import { sqsConsumerFor } from '../../shared/lambda/sqs-consumer.ts';
import { Rejected, type RetryAfter } from '../../shared/message/errors.ts';
import type { AddResult } from '../../shared/message/message.ts';
import { engine } from '../support/engine/engine.ts';
import { lambdaEngine } from '../support/engine/lambda.ts';
import { inboxRow } from '../support/inbox-rows.ts';

const db = await engine.createDatabase();
let settings: Settings;
const context = { getRemainingTimeInMillis: () => 20_000 };

beforeAll(() => {
  vi.stubEnv('POWERTOOLS_LOG_LEVEL', 'SILENT');
  settings = readSettings({ RELAYBOX_DATABASE_URL: db.url });
});
beforeEach(() => db.clear());
afterEach(closeConnections);
afterAll(async () => {
  vi.unstubAllEnvs();
  await db.drop();
});

// As JavaScript returns it: the compiler refuses the first three, as the last test holds.
const wrong = [
  ['Rejected', () => new Rejected('sold out'), /returned an error .*Rejected: sold out.*throw it/],
  ['an error', () => new TypeError('x is undefined'), /returned an error .*TypeError: x is undefined/],
  [
    'batchItemFailures',
    () => ({ batchItemFailures: [{ itemIdentifier: 'a' }] }),
    /returned batchItemFailures.*throw/,
  ],
  ['a response of 500', () => ({ statusCode: 500 }), /statusCode 500.*throw/],
] as const;

const fine = [
  ['nothing', () => undefined],
  ['a number', () => 500],
  ['rows', () => ({ rows: [{ id: 1 }], rowCount: 1 })],
  ['a response of 200', () => ({ statusCode: 200 })],
] as const;

const record = (id: string) => ({
  messageId: `sqs-${id}`,
  body: '{}',
  messageAttributes: { 'relaybox-id': { stringValue: id }, 'relaybox-type': { stringValue: 'order.placed' } },
});

const run = async (returned: () => unknown) => {
  await db.inbox.ingest([inboxRow()]);
  const retry = { firstSeconds: 60 };
  const options = { messageType: 'order.placed', retry, settings };
  return await inboxHandlerFor(lambdaEngine)(options, async ({ id }, { tx }) => {
    await db.effects.write(tx, id);
    return returned();
  })({}, context);
};

const consume = async (returned: () => unknown) =>
  await sqsConsumerFor(lambdaEngine)({ consumer: 'invoicing', settings }, async ({ id }, { tx }) => {
    await db.effects.write(tx, id);
    return returned();
  })({ Records: [record('a')] }, context);

describe('what a handler returns', () => {
  it.each(wrong)('%s is no success: rolled back, counted as failed, and named', async (_, returned, text) => {
    expect(await run(returned)).toMatchObject({ handled: 0, retried: 1 });
    expect(await db.effects.all()).toEqual([]);
    const [row] = await db.rows('inbox');
    expect(row).toMatchObject({ state: 0, retry_count: 1 });
    expect(row?.last_error).toMatch(text);
  });

  it.each(wrong)(
    '%s from an sqsConsumer is reported to the queue, without a receipt',
    async (_, returned) => {
      expect(await consume(returned)).toEqual({ batchItemFailures: [{ itemIdentifier: 'sqs-a' }] });
      expect(await db.effects.all()).toEqual([]);
      expect(await db.count('receipts')).toBe(0);
    },
  );

  it.each(fine)('%s is success', async (_, returned) => {
    expect(await run(returned)).toMatchObject({ handled: 1 });
    expect(await consume(returned)).toEqual({ batchItemFailures: [] });
    expect(await db.effects.all()).toHaveLength(2);
  });
});

const inboxHandler = inboxHandlerFor(lambdaEngine);
const sqsConsumer = sqsConsumerFor(lambdaEngine);
type Taken<Returned> =
  | Parameters<typeof inboxHandler<unknown, Returned>>[1]
  | Parameters<typeof sqsConsumer<unknown, Returned>>[1];

it('an error and an answer to SQS do not compile as what a handler returns; a query’s result does', () => {
  expectTypeOf<() => Promise<Rejected>>().not.toExtend<Taken<Promise<Rejected>>>();
  expectTypeOf<() => Promise<RetryAfter | undefined>>().not.toExtend<
    Taken<Promise<RetryAfter | undefined>>
  >();
  expectTypeOf<() => Error>().not.toExtend<Taken<Error>>();
  expectTypeOf<() => Promise<SQSBatchResponse>>().not.toExtend<Taken<Promise<SQSBatchResponse>>>();

  expectTypeOf<() => Promise<void>>().toExtend<Taken<Promise<void>>>();
  expectTypeOf<() => Promise<unknown>>().toExtend<Taken<Promise<unknown>>>();
  expectTypeOf<() => ReturnType<typeof JSON.parse>>().toExtend<Taken<ReturnType<typeof JSON.parse>>>();
  expectTypeOf<() => Promise<pg.QueryResult>>().toExtend<Taken<Promise<pg.QueryResult>>>();
  expectTypeOf<() => Promise<mssql.IResult<{ id: number }>>>().toExtend<
    Taken<Promise<mssql.IResult<{ id: number }>>>
  >();
  expectTypeOf<() => Promise<AddResult[] | undefined>>().toExtend<Taken<Promise<AddResult[] | undefined>>>();
});
