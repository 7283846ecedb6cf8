import { randomUUID } from 'node:crypto';
import middy from '@middy/core';
import { afterAll, afterEach, beforeEach, describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { readSettings, type Settings } from '../../shared/lambda/config.ts';
import {
  type BoundOutbox,
  closeConnections,
  createIngest,
  inboxHandler,
  type SqlServerTx,
  transactional,
} from '../../shared/lambda/sqlserver/index.ts';
import { engine } from '../support/engine/engine.ts';

const db = await engine.createDatabase();
let settings: Settings;
beforeEach(async () => {
  settings = readSettings({ RELAYBOX_DATABASE_URL: db.url, RELAYBOX_INBOX_SOURCE: 'orders-service' });
  await db.clear();
});
afterEach(closeConnections);
afterAll(() => db.drop());

const context = () => {
  const end = Date.now() + 20_000;
  return { awsRequestId: 'r', getRemainingTimeInMillis: () => end - Date.now() };
};

/** Stores a message of type `order.placed`. */
async function store(id: string, body = '{}'): Promise<void> {
  const attribute = (stringValue: string) => ({ stringValue, dataType: 'String' });
  const messageAttributes = { 'relaybox-id': attribute(id), 'relaybox-type': attribute('order.placed') };
  const event = { Records: [{ messageId: `sqs-${id}`, body, messageAttributes }] };
  expect(await createIngest({ settings })(event, context())).toEqual({ batchItemFailures: [] });
}

const insert = (id: string) => `INSERT INTO ${db.tables.effects} ([Id]) VALUES (N'${id}')`;

describe('tx on SQL Server', () => {
  it("is an mssql transaction: its requests, with inputs of the driver's own, are in it", async () => {
    const place = middy<string, string>()
      .use(transactional({ settings }))
      .handler(async (id, { relaybox: { tx, outbox } }) => {
        expectTypeOf(tx).toEqualTypeOf<SqlServerTx>();
        const request = tx.request().input('id', id);
        await request.query(`INSERT INTO ${db.tables.effects} ([Id]) VALUES (@id)`);
        await tx.request().batch(insert(`${id} again`));
        await outbox.add({ destination: 'events', messageType: 'order.placed', payload: { id } });
        if (id === 'bad') throw new Error('no stock');
        return id;
      });
    // Of the invocation's context only this is read.
    const invocation = context() as unknown as Parameters<typeof place>[1];
    expect(await place('good', invocation)).toBe('good');
    await expect(place('bad', invocation)).rejects.toThrow('no stock');
    expect(await db.effects.all()).toEqual(['good', 'good again']);
    expect(await db.count('outbox')).toBe(1);
  });

  it('and what a handler gets beside it have their types', async () => {
    await store('a', '{"orderId":"1"}');
    const schema = z.object({ orderId: z.string() });
    const handler = inboxHandler(
      { messageType: 'order.placed', schema, settings },
      async (message, { tx, outbox }) => {
        expectTypeOf(message.payload).toEqualTypeOf<{ orderId: string }>();
        expectTypeOf(tx).toEqualTypeOf<SqlServerTx>();
        expectTypeOf(outbox).toEqualTypeOf<BoundOutbox>();
        await tx.query(`INSERT INTO ${db.tables.effects} ([Id]) VALUES (@p1)`, [message.payload.orderId]);
      },
    );
    await handler({}, context());
    expect(await db.effects.all()).toEqual(['1']);
  });
});

describe('a handler on SQL Server', () => {
  it.each(['SELECT 1 AS n; ROLLBACK', 'SELECT 1 AS n; ROLLBACK; BEGIN TRANSACTION'])(
    'that undoes its transaction by %j has done nothing, and its attempt counts',
    async (text) => {
      await store('a');
      const handler = inboxHandler(
        { messageType: 'order.placed', retry: { firstSeconds: 0, maxSeconds: 0 }, maxRetries: 1, settings },
        async (message, { tx, outbox }) => {
          await tx.query(insert(`${message.id}`), []);
          await tx.query(text, []).catch(() => undefined);
          await tx.query(insert('after'), []).catch(() => undefined);
          await outbox.add({ destination: 'events', messageType: 'x', payload: 1 }).catch(() => undefined);
        },
      );
      await handler({}, context());
      expect(await db.rows('inbox', {}, { columns: ['state', 'retry_count'] })).toEqual([
        { state: 3, retry_count: 2 },
      ]);
      expect(await db.effects.all()).toEqual([]);
      expect(await db.count('outbox')).toBe(0);
    },
  );

  it('that begins a transaction inside and does not end it is tried again, and nothing of it stays', async () => {
    await store('a');
    const handler = inboxHandler(
      { messageType: 'order.placed', retry: { firstSeconds: 0, maxSeconds: 0 }, settings },
      async (message, { tx }) => {
        await tx.query(insert(`attempt ${message.attempt}`), []);
        if (message.attempt === 1)
          await tx.query('SELECT 1 AS n; BEGIN TRANSACTION', []).catch(() => undefined);
      },
    );
    await handler({}, context());
    expect(await db.rows('inbox', {}, { columns: ['state'] })).toEqual([{ state: 2 }]);
    expect(await db.effects.all()).toEqual(['attempt 2']);
  });

  it.each([
    'SET LOCK_TIMEOUT 1',
    'SET XACT_ABORT ON',
    "EXEC sp_set_session_context @key = N'tenant', @value = N'a'",
  ])('that did %j leaves nothing of it to the next user of its connection', async (text) => {
    await store('a');
    await store('b');
    const looks = `SELECT CASE WHEN @@LOCK_TIMEOUT = 1 THEN 1 ELSE 0 END AS [wait], @@OPTIONS & 16384 AS [abort],
      CONVERT(NVARCHAR(10), SESSION_CONTEXT(N'tenant')) AS [tenant]`;
    const seen: unknown[] = [];
    const handler = inboxHandler(
      { messageType: 'order.placed', parallelism: 1, batchSize: 1, settings },
      async (_message, { tx }) => {
        seen.push((await tx.query(looks, [])).rows[0]);
        await tx.request().batch(text);
      },
    );
    expect(await handler({}, context())).toMatchObject({ handled: 2 });
    expect(seen).toEqual(Array(2).fill({ wait: 0, abort: 0, tenant: null }));
  });
});

it('a message stored twice is there once, whatever the case of its id says', async () => {
  const id = randomUUID();
  await store(id);
  await store(id);
  await store(id.toUpperCase());
  expect(await db.count('inbox')).toBe(2);
});
