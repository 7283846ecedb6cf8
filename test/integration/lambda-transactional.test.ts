import { setTimeout as sleep } from 'node:timers/promises';
import middy from '@middy/core';
import type { Context } from 'aws-lambda';
import { drizzle } from 'drizzle-orm/node-postgres';
import { pgTable, text } from 'drizzle-orm/pg-core';
import { Kysely, PostgresDialect } from 'kysely';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, it, vi } from 'vitest';
import { readSettings } from '../../shared/lambda/config.ts';
import { closeConnections, transactional } from '../../shared/lambda/postgres/index.ts';
import type { PostgresTx } from '../../shared/lambda/postgres/transaction-client.ts';
import type { TransactionalContext, TransactionalOptions } from '../../shared/lambda/transactional.ts';
import { TransactionError } from '../../shared/message/errors.ts';
import type { AddResult } from '../../shared/message/message.ts';
import { createDatabase } from '../support/database.ts';
import { createMigratedDatabase, type MigratedDatabase } from '../support/migrated.ts';

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

describe('atomic: a handler behind transactional()', () => {
  it('commits its rows and its messages together, and the relay is woken after that', async () => {
    wake.mockImplementationOnce(async () => {
      expect(await messages()).toBe(1);
    });
    const handler = middy<{ orderId: string }>()
      .use(ours())
      .handler(async (event, { relaybox: { tx, outbox } }) => {
        await tx.query('INSERT INTO orders (id) VALUES ($1)', [event.orderId]);
        const { added } = await outbox.add(message);
        expect(await orders()).toEqual([]);
        return { statusCode: 201, added };
      });
    expect(await handler({ orderId: 'a' }, contextOf())).toEqual({ statusCode: 201, added: true });
    expect(await orders()).toEqual(['a']);
    expect(await messages()).toBe(1);
    expect(wake).toHaveBeenCalledTimes(1);
  });

  it('adds many messages in order', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { outbox } }) => outbox.add([message, message]));
    const results = await handler({}, contextOf());
    expect(results).toMatchObject([{ added: true }, { added: true }]);
    expect(await messages()).toBe(2);
  });

  it('rolls both back when it throws, and its error comes through', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx, outbox } }) => {
        await tx.query("INSERT INTO orders (id) VALUES ('a')");
        await outbox.add(message);
        throw new Error('no stock');
      });
    await expect(handler({}, contextOf())).rejects.toThrow('no stock');
    expect(await orders()).toEqual([]);
    expect(await messages()).toBe(0);
    expect(wake).not.toHaveBeenCalled();
  });

  it.each([
    [200, ['a']],
    [399, ['a']],
    [400, []],
    [503, []],
  ])('answering status %i leaves %j', async (statusCode, expected) => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx, outbox } }) => {
        await tx.query("INSERT INTO orders (id) VALUES ('a')");
        await outbox.add(message);
        return { statusCode };
      });
    expect(await handler({}, contextOf())).toEqual({ statusCode });
    expect(await orders()).toEqual(expected);
    expect(await messages()).toBe(expected.length);
    expect(wake).toHaveBeenCalledTimes(expected.length);
  });

  it('decides by rollbackOn where that is given', async () => {
    const handler = middy()
      .use(ours({ rollbackOn: (response) => response === 'no' }))
      .handler(async (event, { relaybox: { tx } }) => {
        await tx.query('INSERT INTO orders (id) VALUES ($1)', [event]);
        return event;
      });
    await handler('no', contextOf());
    await handler('yes', contextOf());
    expect(await orders()).toEqual(['yes']);
  });

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

  it('throws when a statement had failed and the handler went on as if it had not', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx, outbox } }) => {
        await outbox.add(message);
        await tx.query('SELECT 1/0').catch(() => undefined);
        return { statusCode: 201 };
      });
    await expect(handler({}, contextOf())).rejects.toThrow();
    expect(await messages()).toBe(0);
  });

  it('throws when a statement was not awaited, rather than commit a part', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx } }) => {
        await tx.query("INSERT INTO orders (id) VALUES ('a')");
        tx.query('SELECT pg_sleep(0.5)').catch(() => undefined);
        return { statusCode: 201 };
      });
    await expect(handler({}, contextOf())).rejects.toThrow(TransactionError);
    await noneInTransaction();
    expect(await orders()).toEqual([]);
  });

  it('can not end the transaction by itself', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (event, { relaybox: { tx } }) => {
        await tx.query("INSERT INTO orders (id) VALUES ('a')");
        await tx.query('SAVEPOINT one');
        await tx.query("INSERT INTO orders (id) VALUES ('b')");
        await tx.query('ROLLBACK TO SAVEPOINT one');
        if (event !== 'nothing') await tx.query(String(event));
      });
    for (const text of ['COMMIT', ' /* c */ begin', 'rollback', '-- x\nEND;', 'start transaction']) {
      await expect(handler(text, contextOf())).rejects.toThrow(/Relaybox ends this transaction/);
    }
    expect(await orders()).toEqual([]);
    await handler('nothing', contextOf());
    expect(await orders()).toEqual(['a']);
  });
});

describe('a text of several commands that ends the transaction', () => {
  it.each([
    ["INSERT INTO orders (id) VALUES ('own'); COMMIT", ['own']],
    ["INSERT INTO orders (id) VALUES ('own'); COMMIT AND CHAIN", ['own']],
    ['SELECT 1; ROLLBACK; BEGIN', []],
    ['SELECT 1; ROLLBACK AND CHAIN', []],
  ])('%j makes the invocation fail, even where its error is swallowed', async (text, left) => {
    const refusing = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx } }) => {
        await tx.query(text).catch(() => undefined);
        return { statusCode: 400 };
      });
    await expect(refusing({}, contextOf())).rejects.toThrow(/ended from inside/);
    await database.pool.query('TRUNCATE orders, customers');
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx, outbox } }) => {
        await tx.query(text).catch(() => undefined);
        await tx.query("INSERT INTO orders (id) VALUES ('late')").catch(() => undefined);
        await outbox.add(message).catch(() => undefined);
      });
    await expect(handler({}, contextOf())).rejects.toThrow(/ended from inside/);
    await noneInTransaction();
    expect(await orders()).toEqual(left);
    expect(await messages()).toBe(0);
  });
});

describe('a database without the tables', () => {
  it('makes add say which migration is missing', async () => {
    const empty = await createDatabase();
    const settings = readSettings({ RELAYBOX_DATABASE_URL: empty.url });
    const handler = middy()
      .use(ours({ settings }))
      .handler(async (_event, { relaybox: { outbox } }) => outbox.add(message));
    await expect(handler({}, contextOf())).rejects.toThrow(/lacks migration 0001/);
    await closeConnections();
    await empty.drop();
  });
});

describe('BEGIN is lazy', () => {
  it('so that a handler which uses neither tx nor outbox takes no connection', async () => {
    await closeConnections();
    const handler = middy()
      .use(ours())
      .handler(async () => 'ok');
    expect(await handler({}, contextOf())).toBe('ok');
    expect(await backends()).toEqual([]);
  });

  it('and many first uses at once begin one transaction', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx } }) => {
        const ids = await Promise.all(
          [1, 2, 3].map(() => tx.query<{ id: string }>('SELECT pg_current_xact_id() AS id')),
        );
        return new Set(ids.map(({ rows }) => rows[0]?.id)).size;
      });
    expect(await handler({}, contextOf())).toBe(1);
  });

  it('and nothing is woken for where nothing was added', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx, outbox } }) => {
        await tx.query('SELECT 1');
        await outbox.add([]);
        await outbox.add({ ...message, id: '01900000-0000-7000-8000-000000000001' });
      });
    await handler({}, contextOf());
    expect(wake).toHaveBeenCalledTimes(1);
    await handler({}, contextOf());
    expect(wake).toHaveBeenCalledTimes(1);
  });

  it('and a wake that fails does not fail the invocation', async () => {
    wake.mockRejectedValueOnce(new Error('no route'));
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { outbox } }) => {
        await outbox.add(message);
        return 'ok';
      });
    expect(await handler({}, contextOf())).toBe('ok');
  });
});

describe('crash-proof: a transaction that is left over', () => {
  const using = { before: async (request: { context: object }) => use(request.context) };
  async function use(context: object): Promise<void> {
    const { tx } = (context as { relaybox: { tx: { query(text: string): Promise<unknown> } } }).relaybox;
    await tx.query("INSERT INTO orders (id) VALUES ('left')");
  }

  it('by an early response of a later middleware is destroyed, not returned to the pool', async () => {
    const handler = middy()
      .use(ours())
      .use(using)
      .use({ before: () => ({ statusCode: 200, early: true }) })
      .handler(async () => 'never');
    expect(await handler({}, contextOf())).toEqual({ statusCode: 200, early: true });
    await noneInTransaction();
    expect(await orders()).toEqual([]);
  });

  it("by an early response of a later middleware's after is destroyed", async () => {
    const handler = middy()
      .use(ours())
      .use({ after: () => 'early' })
      .handler(async (_event, context) => use(context));
    expect(await handler({}, contextOf())).toBe('early');
    await noneInTransaction();
    expect(await orders()).toEqual([]);
  });

  it.each([
    ['answers', () => 'mapped'],
    [
      'throws',
      () => {
        throw new Error('mapped');
      },
    ],
  ])('by a later middleware whose onError %s is destroyed', async (_how, onError) => {
    const handler = middy()
      .use(ours())
      .use({ onError })
      .handler(async (_event, context) => {
        await use(context);
        throw new Error('original');
      });
    const outcome = await Promise.resolve(handler({}, contextOf())).catch((error: Error) => error.message);
    expect(outcome).toBe('mapped');
    await noneInTransaction();
    expect(await orders()).toEqual([]);
  });

  it('by an error of a later middleware is rolled back', async () => {
    const handler = middy()
      .use(ours())
      .use(using)
      .use({
        before() {
          throw new Error('not allowed');
        },
      })
      .handler(async () => 'never');
    await expect(handler({}, contextOf())).rejects.toThrow('not allowed');
    await noneInTransaction();
    expect(await orders()).toEqual([]);
  });

  it('by a timeout is destroyed, and what the handler does afterwards has no effect', async () => {
    let late: Promise<unknown> | undefined;
    const handler = middy({ timeoutEarlyInMillis: 100 })
      .use(ours())
      .handler(async (_event, { relaybox: { tx, outbox } }) => {
        await tx.query("INSERT INTO orders (id) VALUES ('a')");
        await sleep(300);
        late = Promise.allSettled([tx.query("INSERT INTO orders (id) VALUES ('b')"), outbox.add(message)]);
        await late;
      });
    await expect(handler({}, contextOf(250))).rejects.toThrow(/aborted/);
    await noneInTransaction();
    await vi.waitFor(() => expect(late).toBeDefined());
    expect(await late).toMatchObject([
      { status: 'rejected', reason: { code: 'RELAYBOX_TRANSACTION' } },
      { status: 'rejected', reason: { code: 'RELAYBOX_TRANSACTION' } },
    ]);
    expect(await orders()).toEqual([]);
    expect(await messages()).toBe(0);
  });

  it('by a timeout that answers instead of throwing is not committed', async () => {
    const handler = middy({ timeoutEarlyInMillis: 100, timeoutEarlyResponse: () => ({ statusCode: 200 }) })
      .use(ours({ timeoutEarlyInMillis: 100 }))
      .handler(async (_event, { relaybox: { tx } }) => {
        await tx.query("INSERT INTO orders (id) VALUES ('a')");
        await sleep(300);
      });
    await expect(handler({}, contextOf(250))).rejects.toThrow(TransactionError);
    await noneInTransaction();
    expect(await orders()).toEqual([]);
  });

  it('in the middle of a statement is destroyed without waiting for it', async () => {
    const handler = middy({ timeoutEarlyInMillis: 100 })
      .use(ours())
      .handler(async (_event, { relaybox: { tx } }) => {
        await tx.query('SELECT pg_sleep(20)');
      });
    const started = performance.now();
    await expect(handler({}, contextOf(400))).rejects.toThrow();
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  it('by an invocation whose time is over is destroyed when the next one starts', async () => {
    const middleware = ours();
    const left = {
      event: {},
      context: contextOf(2_000),
      response: undefined,
      error: undefined,
      internal: {},
    };
    // As middy does it, up to where it would be killed or frozen.
    await middleware.before?.(left as never);
    await use(left.context);
    await vi.waitFor(async () => {
      expect((await backends()).map(({ state }) => state)).toContain('idle in transaction');
    });
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_000);
    const next = { ...left, context: contextOf() };
    await middleware.before?.(next as never);
    vi.restoreAllMocks();
    await noneInTransaction();
    await expect(use(left.context)).rejects.toThrow(TransactionError);
  });

  it('by a function that is frozen for good is ended by the server', async () => {
    const middleware = ours();
    const left = { event: {}, context: contextOf(300), response: undefined, error: undefined, internal: {} };
    await middleware.before?.(left as never);
    await use(left.context);
    await noneInTransaction();
    expect(await orders()).toEqual([]);
  });
});

describe('several invocations in one container', () => {
  it('have a transaction each', async () => {
    const handler = middy<string>()
      .use(ours({ poolSize: 3 }))
      .handler(async (event, { relaybox: { tx } }) => {
        await tx.query('INSERT INTO orders (id) VALUES ($1)', [event]);
        await sleep(50);
        if (event === 'b') throw new Error('b fails');
      });
    await Promise.allSettled(['a', 'b', 'c'].map((id) => handler(id, contextOf())));
    expect(await orders()).toEqual(['a', 'c']);
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
