import { drizzle } from 'drizzle-orm/node-postgres';
import knex from 'knex';
import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AddResult, NewMessage } from '../../../shared/message/message.ts';
import { fromDrizzle } from '../../../shared/store/postgres/adapters/drizzle.ts';
import { fromKnex } from '../../../shared/store/postgres/adapters/knex.ts';
import { fromKysely } from '../../../shared/store/postgres/adapters/kysely.ts';
import { postgresOutbox } from '../../../shared/store/postgres/producer.ts';
import { createMigratedDatabase, type MigratedDatabase } from '../../support/migrated.ts';

const outbox = postgresOutbox();
let db: MigratedDatabase;
const closers: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  db = await createMigratedDatabase();
  await db.pool.query('CREATE TABLE orders (name text PRIMARY KEY)');
});

afterAll(async () => {
  for (const close of closers) await close();
  await db.drop();
});

/** One business row and two messages, in one transaction of each library; `fail` throws before its end. */
type Work = (order: string, messages: NewMessage[], fail: boolean) => Promise<AddResult[]>;

const libraries: Record<string, () => Work> = {
  pg: () => async (order, messages, fail) => {
    const client = await db.pool.connect();
    try {
      await client.query('BEGIN');
      await client.query('INSERT INTO orders VALUES ($1)', [order]);
      const results = await outbox.add(client, messages);
      if (fail) throw new Error('changed my mind');
      await client.query('COMMIT');
      return results;
    } catch (error) {
      await client.query('ROLLBACK');
      throw error;
    } finally {
      client.release();
    }
  },
  Kysely: () => {
    const kysely = new Kysely<{ orders: { name: string } }>({
      dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: db.url, max: 2 }) }),
    });
    closers.push(() => kysely.destroy());
    return (order, messages, fail) =>
      kysely.transaction().execute(async (trx) => {
        await trx.insertInto('orders').values({ name: order }).execute();
        const results = await outbox.add(fromKysely(trx), messages);
        if (fail) throw new Error('changed my mind');
        await sql`SELECT 1`.execute(trx);
        return results;
      });
  },
  Drizzle: () => {
    const pool = new pg.Pool({ connectionString: db.url, max: 2 });
    closers.push(() => pool.end());
    const drizzled = drizzle({ client: pool });
    return (order, messages, fail) =>
      drizzled.transaction(async (tx) => {
        await tx.execute(`INSERT INTO orders VALUES ('${order}')`);
        const results = await outbox.add(fromDrizzle(tx), messages);
        if (fail) throw new Error('changed my mind');
        return results;
      });
  },
  Knex: () => {
    const knexed = knex({ client: 'pg', connection: db.url, pool: { min: 0, max: 2 } });
    closers.push(() => knexed.destroy());
    return (order, messages, fail) =>
      knexed.transaction(async (trx) => {
        await trx('orders').insert({ name: order });
        const results = await outbox.add(fromKnex(trx), messages);
        if (fail) throw new Error('changed my mind');
        return results;
      });
  },
};

async function counts(order: string): Promise<{ orders: number; messages: number }> {
  const { rows } = await db.pool.query(
    `SELECT (SELECT count(*)::int FROM orders WHERE name = $1) AS orders,
            (SELECT count(*)::int FROM outbox_messages WHERE correlation_id = $1) AS messages`,
    [order],
  );
  return rows[0];
}

function messages(order: string): NewMessage[] {
  return [1, 2].map((line) => ({
    destination: 'orders',
    messageType: 'order.placed',
    payload: { order, line, question: 'what does "?" or $1 do?' },
    headers: { tenant: 'a?b $1' },
    correlationId: order,
  }));
}

describe.each(Object.keys(libraries))('atomic: in a transaction of %s', (name) => {
  let work: Work;
  beforeAll(() => {
    work = (libraries[name] as () => Work)();
  });

  test('what commits is in the outbox beside the business row', async () => {
    const order = `${name}-committed`;
    const results = await work(order, messages(order), false);
    expect(results.map((result) => result.added)).toEqual([true, true]);
    expect(await counts(order)).toEqual({ orders: 1, messages: 2 });
    const { rows } = await db.pool.query(
      'SELECT id::text, payload, headers FROM outbox_messages WHERE correlation_id = $1 ORDER BY sequence',
      [order],
    );
    expect(rows.map((row) => row.id)).toEqual(results.map((result) => result.id));
    expect(JSON.parse(rows[1].payload)).toEqual(messages(order)[1]?.payload);
    expect(rows[1].headers).toEqual({ tenant: 'a?b $1' });
  });

  test('what rolls back leaves neither', async () => {
    const order = `${name}-rolled-back`;
    await expect(work(order, messages(order), true)).rejects.toThrow('changed my mind');
    expect(await counts(order)).toEqual({ orders: 0, messages: 0 });
  });
});

test('an ORM without a transaction is refused', async () => {
  const kysely = new Kysely<unknown>({
    dialect: new PostgresDialect({ pool: async () => new pg.Pool({ connectionString: db.url }) }),
  });
  const knexed = knex({ client: 'pg', connection: db.url });
  closers.push(
    () => kysely.destroy(),
    () => knexed.destroy(),
  );
  expect(() => fromKysely(kysely)).toThrow(/takes the trx/);
  expect(() => fromKnex(knexed)).toThrow(/takes the trx/);
  await expect(outbox.add(db.pool, { destination: 'a', messageType: 'b', payload: 1 })).rejects.toThrow(
    /Pool/,
  );
});
