import knex from 'knex';
import { Kysely, MssqlDialect, sql } from 'kysely';
import mssql from 'mssql';
import * as tarn from 'tarn';
import * as tedious from 'tedious';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AddResult, NewMessage } from '../../shared/message/message.ts';
import { fromKnex } from '../../shared/store/sqlserver/adapters/knex.ts';
import { fromKysely } from '../../shared/store/sqlserver/adapters/kysely.ts';
import { sqlServerOutbox } from '../../shared/store/sqlserver/producer.ts';
import { engine } from '../support/engine/engine.ts';

const outbox = sqlServerOutbox();
const db = await engine.createDatabase();
const closers: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  const text = 'CREATE TABLE Orders ([Name] NVARCHAR(100) NOT NULL PRIMARY KEY)';
  await db.sql({ postgres: text, sqlserver: text });
});
afterAll(async () => {
  for (const close of closers) await close();
  await db.drop();
});

/** One business row and two messages, in one transaction of each library; `fail` throws before its end. */
type Work = (order: string, messages: NewMessage[], fail: boolean) => Promise<readonly AddResult[]>;

function server() {
  const { hostname, port, username, password, pathname } = new URL(db.url);
  return {
    host: hostname,
    port: Number(port),
    user: username,
    password: decodeURIComponent(password),
    database: pathname.slice(1),
  };
}

function kysely(): Kysely<{ Orders: { Name: string } }> {
  const { host, port, user, password, database } = server();
  const made = new Kysely<{ Orders: { Name: string } }>({
    dialect: new MssqlDialect({
      tarn: { ...tarn, options: { min: 0, max: 2 } },
      tedious: {
        ...tedious,
        connectionFactory: () =>
          new tedious.Connection({
            server: host,
            authentication: { type: 'default', options: { userName: user, password } },
            options: { port, database, encrypt: false, trustServerCertificate: true },
          }),
      },
    }),
  });
  closers.push(() => made.destroy());
  return made;
}

function knexed() {
  const { host, ...rest } = server();
  const made = knex({
    client: 'mssql',
    connection: { server: host, ...rest, options: { encrypt: false, trustServerCertificate: true } },
    pool: { min: 0, max: 2 },
  });
  closers.push(() => made.destroy());
  return made;
}

const libraries: Record<string, () => Promise<Work>> = {
  mssql: async () => {
    const { host, ...rest } = server();
    const pool = new mssql.ConnectionPool({
      server: host,
      ...rest,
      options: { encrypt: false, trustServerCertificate: true },
    });
    await pool.connect();
    closers.push(() => pool.close());
    return async (order, messages, fail) => {
      const transaction = new mssql.Transaction(pool);
      await transaction.begin();
      try {
        await transaction.request().input('name', order).query('INSERT INTO Orders VALUES (@name)');
        const results = await outbox.add(transaction, messages);
        if (fail) throw new Error('changed my mind');
        await transaction.commit();
        return results;
      } catch (error) {
        await transaction.rollback();
        throw error;
      }
    };
  },
  Kysely: async () => {
    const made = kysely();
    return (order, messages, fail) =>
      made.transaction().execute(async (trx) => {
        await trx.insertInto('Orders').values({ Name: order }).execute();
        const results = await outbox.add(fromKysely(trx), messages);
        if (fail) throw new Error('changed my mind');
        await sql`SELECT 1 AS one`.execute(trx);
        return results;
      });
  },
  Knex: async () => {
    const made = knexed();
    return (order, messages, fail) =>
      made.transaction(async (trx) => {
        await trx('Orders').insert({ Name: order });
        const results = await outbox.add(fromKnex(trx), messages);
        if (fail) throw new Error('changed my mind');
        return results;
      });
  },
};

async function counts(order: string): Promise<unknown> {
  const text = 'SELECT COUNT(*) AS [orders] FROM Orders WHERE [Name] = @p1';
  const [row] = await db.sql({ postgres: text, sqlserver: text }, [order]);
  return { orders: Number(row?.['orders']), messages: await db.count('outbox', { correlation_id: order }) };
}

function messages(order: string): NewMessage[] {
  return [1, 2].map((line) => ({
    destination: 'orders',
    messageType: 'order.placed',
    payload: { order, line, question: 'what does "?" or @p1 do?' },
    headers: { tenant: 'a?b @p1' },
    correlationId: order,
  }));
}

describe.each(Object.keys(libraries))('atomic: in a transaction of %s', (name) => {
  let work: Work;
  beforeAll(async () => {
    work = await (libraries[name] as () => Promise<Work>)();
  });

  test('what commits is in the outbox beside the business row', async () => {
    const order = `${name}-committed`;
    const results = await work(order, messages(order), false);
    expect(results.map(({ added }) => added)).toEqual([true, true]);
    expect(await counts(order)).toEqual({ orders: 1, messages: 2 });
    const rows = await db.rows('outbox', { correlation_id: order });
    expect(rows.map(({ id }) => id)).toEqual(results.map(({ id }) => id));
    expect(JSON.parse(String(rows[1]?.payload))).toEqual(messages(order)[1]?.payload);
    expect(rows[1]?.headers).toEqual({ tenant: 'a?b @p1' });
  });

  test('what rolls back leaves neither', async () => {
    const order = `${name}-rolled-back`;
    await expect(work(order, messages(order), true)).rejects.toThrow('changed my mind');
    expect(await counts(order)).toEqual({ orders: 0, messages: 0 });
  });

  test('an id that is there already leaves the transaction usable', async () => {
    const [order, again] = [`${name}-once`, `${name}-again`];
    const [{ id } = { id: '' }] = await work(order, messages(order), false);
    const [first = { destination: 'orders', messageType: 'x', payload: 1 }] = messages(again);
    expect(await work(again, [{ ...first, id }], false)).toEqual([{ id, added: false }]);
    expect(await counts(again)).toEqual({ orders: 1, messages: 0 });
  });
});

test('an ORM without a transaction is refused', () => {
  expect(() => fromKysely(kysely())).toThrow(/takes the trx/);
  expect(() => fromKnex(knexed())).toThrow(/takes the trx/);
});
