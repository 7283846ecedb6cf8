import { setTimeout as sleep } from 'node:timers/promises';
import middy from '@middy/core';
import type { Context } from 'aws-lambda';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { readSettings } from '../../shared/lambda/config.ts';
import { closeConnections } from '../../shared/lambda/connections.ts';
import {
  type TransactionalContext,
  type TransactionalOptions,
  transactionalFor,
} from '../../shared/lambda/transactional.ts';
import { TransactionError } from '../../shared/message/errors.ts';
import { engine } from '../support/engine/engine.ts';
import { lambdaEngine } from '../support/engine/lambda.ts';
import type { Sql, TestTx } from '../support/engine/test-engine.ts';

const transactional = transactionalFor(lambdaEngine);
const db = await engine.createDatabase();
const wake = vi.fn(async () => undefined);
beforeEach(async () => {
  await db.clear('effects', 'outbox');
  wake.mockClear();
});
afterAll(async () => {
  await closeConnections();
  await db.drop();
});

function ours(options: TransactionalOptions = {}) {
  const settings = readSettings({ RELAYBOX_DATABASE_URL: db.url });
  return transactional({ settings, wake, ...options });
}

/** What Lambda passes. Middy's types demand of the caller what its middlewares will add. */
function contextOf(remainingMs = 10_000): Context & TransactionalContext<TestTx> {
  const end = Date.now() + remainingMs;
  return { awsRequestId: 'r', getRemainingTimeInMillis: () => end - Date.now() } as ReturnType<
    typeof contextOf
  >;
}

const message = { destination: 'orders', messageType: 'order.placed', payload: { orderId: '1' } };

const order = (tx: TestTx, id: string) => db.effects.write(tx, id);
const orders = async () => (await db.effects.all()).sort();
const messages = () => db.count('outbox');

/** Waits until the server has noticed that a connection was closed. */
async function noneInTransaction(): Promise<void> {
  await vi.waitFor(async () => expect(await db.openTransactions()).toBe(0));
}

describe('atomic: a handler behind transactional()', () => {
  it('commits its rows and its messages together, and the relay is woken after that', async () => {
    wake.mockImplementationOnce(async () => {
      expect(await messages()).toBe(1);
    });
    const handler = middy<{ orderId: string }>()
      .use(ours())
      .handler(async (event, { relaybox: { tx, outbox } }) => {
        await order(tx, event.orderId);
        const { added } = await outbox.add(message);
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
        await order(tx, 'a');
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
        await order(tx, 'a');
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
        await order(tx, String(event));
        return event;
      });
    await handler('no', contextOf());
    await handler('yes', contextOf());
    expect(await orders()).toEqual(['yes']);
  });

  const swallowed = engine.caughtErrorDoomsTransaction
    ? 'throws when a statement had failed and the handler went on as if it had not'
    : 'commits what a handler wrote beside a statement that failed, where it went on as if it had not';
  it(swallowed, async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx, outbox } }) => {
        await outbox.add(message);
        await expect(db.refused(tx)).rejects.toThrow();
        return { statusCode: 201 };
      });
    const answered = handler({}, contextOf());
    if (engine.caughtErrorDoomsTransaction) await expect(answered).rejects.toThrow();
    else expect(await answered).toEqual({ statusCode: 201 });
    expect(await messages()).toBe(engine.caughtErrorDoomsTransaction ? 0 : 1);
  });

  it('throws when a statement was not awaited, rather than commit a part', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx } }) => {
        await order(tx, 'a');
        db.dawdle(tx, 0.5).catch(() => undefined);
        return { statusCode: 201 };
      });
    await expect(handler({}, contextOf())).rejects.toThrow(TransactionError);
    await noneInTransaction();
    expect(await orders()).toEqual([]);
  });

  it.each<[string, Sql]>([
    ['COMMIT', { postgres: 'COMMIT', sqlserver: 'COMMIT' }],
    ['a begin behind a comment', { postgres: ' /* c */ begin', sqlserver: ' /* c */ begin tran' }],
    ['rollback', { postgres: 'rollback', sqlserver: 'rollback' }],
    ['another word for COMMIT', { postgres: '-- x\nEND;', sqlserver: '-- x\nCOMMIT WORK;' }],
    ['another word for BEGIN', { postgres: 'start transaction', sqlserver: 'BEGIN TRANSACTION' }],
  ])('can not end the transaction by %s', async (_, text) => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx } }) => {
        await order(tx, 'a');
        await db.sqlWithin(tx, text);
      });
    await expect(handler({}, contextOf())).rejects.toThrow(/Relaybox ends this transaction/);
    expect(await orders()).toEqual([]);
  });

  it('can go back to a savepoint of its own', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx } }) => {
        await order(tx, 'a');
        await db.sqlWithin(tx, { postgres: 'SAVEPOINT one', sqlserver: 'SAVE TRANSACTION one' });
        await order(tx, 'b');
        const back = { postgres: 'ROLLBACK TO SAVEPOINT one', sqlserver: 'ROLLBACK TRANSACTION one' };
        await db.sqlWithin(tx, back);
      });
    await handler({}, contextOf());
    expect(await orders()).toEqual(['a']);
  });
});

describe('a text of several commands that ends the transaction', () => {
  const own = "INSERT INTO effects (id) VALUES ('own')";
  it.each<[string, Sql]>([
    ['by COMMIT', { postgres: `${own}; COMMIT`, sqlserver: `${own}; COMMIT` }],
    [
      'and begins the next',
      { postgres: `${own}; COMMIT AND CHAIN`, sqlserver: `${own}; COMMIT; BEGIN TRANSACTION` },
    ],
  ])('%s makes the invocation fail, even where its error is swallowed', async (_, text) => {
    const refusing = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx } }) => {
        await db.sqlWithin(tx, text).catch(() => undefined);
        return { statusCode: 400 };
      });
    await expect(refusing({}, contextOf())).rejects.toThrow(/ended from inside/);
    await db.clear('effects');
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx, outbox } }) => {
        await db.sqlWithin(tx, text).catch(() => undefined);
        await order(tx, 'late').catch(() => undefined);
        await outbox.add(message).catch(() => undefined);
      });
    await expect(handler({}, contextOf())).rejects.toThrow(/ended from inside/);
    await noneInTransaction();
    expect(await orders()).toEqual(['own']);
    expect(await messages()).toBe(0);
  });
});

describe('a database without the tables', () => {
  it('makes add say which migration is missing', async () => {
    const empty = await engine.createEmpty();
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
  it('so that a handler which uses neither tx nor outbox needs no database', async () => {
    const url = new URL(db.url);
    url.port = '1';
    const handler = middy()
      .use(ours({ settings: readSettings({ RELAYBOX_DATABASE_URL: url.href }) }))
      .handler(async () => 'ok');
    expect(await handler({}, contextOf())).toBe('ok');
    await closeConnections();
  });

  it('and many first uses at once begin one transaction', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx } }) => {
        const id = {
          postgres: 'SELECT pg_current_xact_id()::text AS id',
          sqlserver: 'SELECT CURRENT_TRANSACTION_ID() AS id',
        };
        const ids = await Promise.all([1, 2, 3].map(() => db.sqlWithin(tx, id)));
        return new Set(ids.map(([row]) => row?.['id'])).size;
      });
    expect(await handler({}, contextOf())).toBe(1);
  });

  it('and nothing is woken for where nothing was added', async () => {
    const handler = middy()
      .use(ours())
      .handler(async (_event, { relaybox: { tx, outbox } }) => {
        await tx.query('SELECT 1 AS one', []);
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
    await order((context as TransactionalContext<TestTx>).relaybox.tx, 'left');
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
        await order(tx, 'a');
        await sleep(1_000);
        late = Promise.allSettled([order(tx, 'b'), outbox.add(message)]);
        await late;
      });
    await expect(handler({}, contextOf(900))).rejects.toThrow(/aborted/);
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
        await order(tx, 'a');
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
        await db.dawdle(tx, 20);
      });
    const started = performance.now();
    await expect(handler({}, contextOf(400))).rejects.toThrow();
    expect(performance.now() - started).toBeLessThan(15_000);
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
    await vi.waitFor(async () => expect(await db.openTransactions()).toBe(1));
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_000);
    const next = { ...left, context: contextOf() };
    await middleware.before?.(next as never);
    vi.restoreAllMocks();
    await noneInTransaction();
    await expect(use(left.context)).rejects.toThrow(TransactionError);
  });
});

describe('several invocations in one container', () => {
  it('have a transaction each', async () => {
    const handler = middy<string>()
      .use(ours({ poolSize: 3 }))
      .handler(async (event, { relaybox: { tx } }) => {
        await order(tx, String(event));
        await sleep(50);
        if (event === 'b') throw new Error('b fails');
      });
    await Promise.allSettled(['a', 'b', 'c'].map((id) => handler(id, contextOf())));
    expect(await orders()).toEqual(['a', 'c']);
  });
});
