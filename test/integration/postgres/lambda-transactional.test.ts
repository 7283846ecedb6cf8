import middy from '@middy/core';
import type { Context } from 'aws-lambda';
import { drizzle } from 'drizzle-orm/node-postgres';
import { pgTable, text } from 'drizzle-orm/pg-core';
import { Kysely, PostgresDialect } from 'kysely';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, it, vi } from 'vitest';
import { readSettings } from '../../../shared/lambda/config.ts';
import { closeConnections, transactional } from '../../../shared/lambda/postgres/index.ts';
import type { PostgresTx } from '../../../shared/lambda/postgres/transaction-client.ts';
import type { TransactionalContext, TransactionalOptions } from '../../../shared/lambda/transactional.ts';
import type { AddResult } from '../../../shared/message/message.ts';
import { createMigratedDatabase, type MigratedDatabase } from '../../support/migrated.ts';

let database: MigratedDatabase;
const wake = vi.fn(async () => undefined);

beforeAll(async () => {
  database = await createMigratedDatabase();
  await database.pool.query(`
    CREATE TABLE orders (id text PRIMARY KEY, customer text);
    CREATE TABLE customers (id text PRIMARY KEY);
    ALTER TABLE orders ADD FOREIGN KEY (customer) REFERENCES customers DEFERRABLE INITIALLY DEFERRED`);
});
beforeEach(async () => {
  await database.pool.query('TRUNCATE orders, customers, outbox_messages');
  wake.mockClear();
});
afterAll(async () => {
  await closeConnections();
  await database.drop();
});

function ours(options: TransactionalOptions = {}) {
  const settings = readSettings({ RELAYBOX_DATABASE_URL: database.url });
  return transactional({ settings, wake, ...options });
}

/** What Lambda passes. Middy's types demand of the caller what its middlewares will add. */
function contextOf(remainingMs = 10_000): Context & TransactionalContext<PostgresTx> {
  const end = Date.now() + remainingMs;
  return { awsRequestId: 'r', getRemainingTimeInMillis: () => end - Date.now() } as ReturnType<
    typeof contextOf
  >;
}

const message = { destination: 'orders', messageType: 'order.placed', payload: { orderId: '1' } };

async function orders(): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>('SELECT id FROM orders ORDER BY id');
  return rows.map((row) => row.id);
}

async function messages(): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>('SELECT count(*)::int AS n FROM outbox_messages');
  return rows[0]?.n ?? -1;
}

/** Backends of the connections under test, by what they are doing. */
async function backends(): Promise<{ pid: number; state: string }[]> {
  const { rows } = await database.pool.query<{ pid: number; state: string }>(
    "SELECT pid, state FROM pg_stat_activity WHERE application_name = 'relaybox' AND datname = current_database()",
  );
  return rows;
}

/** Waits until the server has noticed that a connection was closed. */
async function noneInTransaction(): Promise<void> {
  await vi.waitFor(async () => {
    expect((await backends()).filter(({ state }) => state.startsWith('idle in transaction'))).toEqual([]);
  });
}

describe('transactional() on PostgreSQL', () => {
  it('throws when the COMMIT fails, and sends no wake', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx, outbox } }) => {
        await tx.query("INSERT INTO orders (id, customer) VALUES ('a', 'nobody')");
        await outbox.add(message);
        return { statusCode: 201 };
      });
    await expect(handler({}, contextOf())).rejects.toThrow(/foreign key/);
    expect(await messages()).toBe(0);
    expect(wake).not.toHaveBeenCalled();
  });

  it.each(['SELECT 1; ROLLBACK; BEGIN', 'SELECT 1; ROLLBACK AND CHAIN'])(
    'fails after %j, even where its error is swallowed',
    async (text) => {
      const handler = middy()
        .use(ours())
        .handler(async (_event, { relaybox: { tx, outbox } }) => {
          await tx.query(text).catch(() => undefined);
          await tx.query("INSERT INTO orders (id) VALUES ('late')").catch(() => undefined);
          await outbox.add(message).catch(() => undefined);
        });
      await expect(handler({}, contextOf())).rejects.toThrow(/ended from inside/);
      await noneInTransaction();
      expect(await orders()).toEqual([]);
      expect(await messages()).toBe(0);
    },
  );

  it('a transaction left over by a function that is frozen for good is ended by the server', async () => {
    const middleware = ours();
    const left = { event: {}, context: contextOf(300), response: undefined, error: undefined, internal: {} };
    await middleware.before?.(left as never);
    const { tx } = (left.context as TransactionalContext<PostgresTx>).relaybox;
    await tx.query("INSERT INTO orders (id) VALUES ('left')");
    await noneInTransaction();
    expect(await orders()).toEqual([]);
  });
});

describe('tx', () => {
  it('is a pg client by its type, without a word of annotation', async () => {
    const handler = middy<{ orderId: string }, string>()
      .use(ours())
      .handler(async (event, { awsRequestId, relaybox }) => {
        expectTypeOf(event.orderId).toEqualTypeOf<string>();
        expectTypeOf(awsRequestId).toEqualTypeOf<string>();
        expectTypeOf(relaybox.tx).toEqualTypeOf<pg.PoolClient>();
        expectTypeOf(relaybox.outbox.add(message)).resolves.toEqualTypeOf<AddResult>();
        const [one, two] = await relaybox.outbox.add([message, message]);
        expectTypeOf(two).toEqualTypeOf<AddResult>();
        return one.id;
      });
    expect(await handler({ orderId: 'a' }, contextOf())).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('can be given to Drizzle', async () => {
    const table = pgTable('orders', { id: text().primaryKey() });
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx } }) => {
        const db = drizzle(tx);
        await db.insert(table).values([{ id: 'a' }, { id: 'b' }]);
        return (await db.select().from(table)).map(({ id }) => id);
      });
    expect(await handler({}, contextOf())).toEqual(['a', 'b']);
    expect(await orders()).toEqual(['a', 'b']);
  });

  it('can be given to Kysely, whose own transactions are refused', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (event, { relaybox: { tx } }) => {
        const pool = { connect: async () => tx, end: async () => undefined, options: {} };
        const db = new Kysely<{ orders: { id: string } }>({ dialect: new PostgresDialect({ pool }) });
        await db.insertInto('orders').values({ id: 'a' }).execute();
        if (event === 'nested') await db.transaction().execute(async () => undefined);
        return db.selectFrom('orders').select('id').execute();
      });
    await expect(handler('nested', contextOf())).rejects.toThrow(/BEGIN was refused/i);
    expect(await orders()).toEqual([]);
    expect(await handler('plain', contextOf())).toEqual([{ id: 'a' }]);
    expect(await orders()).toEqual(['a']);
  });

  it('takes callbacks and configs as pg does', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx } }) => {
        const byCallback = await new Promise((resolve, reject) => {
          tx.query('SELECT $1::int AS one', [1], (error, result) => {
            if (error) reject(error);
            else resolve(result.rows);
          });
        });
        const asArrays = await tx.query({ text: 'SELECT 1, 2', rowMode: 'array' });
        return [byCallback, asArrays.rows];
      });
    expect(await handler({}, contextOf())).toEqual([[{ one: 1 }], [[1, 2]]]);
  });
});
