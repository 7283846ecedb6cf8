import type pg from 'pg';
import { afterAll, afterEach, beforeEach, describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { readSettings } from '../../../shared/lambda/config.ts';
import {
  type BoundOutbox,
  closeConnections,
  createIngest,
  type HandlerContext,
  inboxHandler,
} from '../../../shared/lambda/postgres/index.ts';
import type { Message } from '../../../shared/message/message.ts';
import { createMigratedDatabase } from '../../support/migrated.ts';

const { pool, url, drop } = await createMigratedDatabase();
const settings = readSettings({ RELAYBOX_DATABASE_URL: url, RELAYBOX_INBOX_SOURCE: 'orders-service' });
await pool.query('CREATE TABLE effects (id serial PRIMARY KEY, what text)');
beforeEach(() => pool.query('TRUNCATE effects, inbox_messages, inbox_keys, outbox_messages'));
afterEach(closeConnections);
afterAll(() => drop());

const Placed = z.object({ orderId: z.string(), at: z.coerce.date() });

const context = () => {
  const end = Date.now() + 20_000;
  return { awsRequestId: 'r', getRemainingTimeInMillis: () => end - Date.now() };
};

function record(id: string, body = '{}') {
  const attribute = (stringValue: string) => ({ stringValue, dataType: 'String' });
  const messageAttributes = { 'relaybox-id': attribute(id), 'relaybox-type': attribute('order.placed') };
  return { messageId: `sqs-${id}`, body, messageAttributes };
}

async function store(...records: ReturnType<typeof record>[]): Promise<void> {
  await createIngest({ settings })({ Records: records }, context());
}

async function effects(): Promise<string[]> {
  const { rows } = await pool.query<{ what: string }>('SELECT what FROM effects ORDER BY id');
  return rows.map(({ what }) => what);
}

const effect = (tx: pg.PoolClient, what: string) =>
  tx.query('INSERT INTO effects (what) VALUES ($1)', [what]);

describe('inboxHandler on PostgreSQL', () => {
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

  it.each([
    "INSERT INTO effects (what) VALUES ('own'); ROLLBACK",
    'SELECT 1; ROLLBACK; BEGIN',
    'SELECT 1; ROLLBACK AND CHAIN',
  ])('a handler that ends its transaction by %j goes no further, and is not tried again', async (text) => {
    await store(record('a'));
    const seen: unknown[] = [];
    const handler = inboxHandler(
      { messageType: 'order.placed', retry: { firstSeconds: 0, maxSeconds: 0 }, settings },
      async (message, { tx }) => {
        await effect(tx, message.id);
        await tx.query(text).catch((error) => seen.push(error));
        await effect(tx, 'after').catch((error) => seen.push(error));
      },
    );
    await handler({}, context());
    const { rows } = await pool.query('SELECT state, last_error FROM inbox_messages');
    expect(rows).toEqual([{ state: 3, last_error: expect.stringContaining('was ended from inside by') }]);
    expect(seen.map((error) => (error as Error).name)).toEqual(Array(2).fill('TransactionError'));
    expect(await effects()).toEqual([]);
  });

  it('gives the handler what its types say', async () => {
    await store(record('a', '{"orderId":"1","at":"2026-11-30T00:00:00.000Z"}'));
    const handler = inboxHandler(
      { messageType: 'order.placed', schema: Placed, settings },
      async (message, { tx, outbox }) => {
        expectTypeOf(message.payload).toEqualTypeOf<{ orderId: string; at: Date }>();
        expectTypeOf(tx).toEqualTypeOf<pg.PoolClient>();
        expectTypeOf(outbox).toEqualTypeOf<BoundOutbox>();
        await effect(tx, String(message.payload.at.getUTCFullYear()));
      },
    );
    await handler({}, context());
    expect(await effects()).toEqual(['2026']);
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
