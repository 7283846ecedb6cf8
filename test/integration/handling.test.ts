import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Deadline } from '../../shared/delivery/deadline.ts';
import { Rejected, RetryAfter } from '../../shared/message/errors.ts';
import type { NewInboxRow } from '../../shared/store/inbox-store.ts';
import { engine } from '../support/engine/engine.ts';
import { handlingOn, type TestHandler, withCommit } from '../support/engine/handling.ts';
import type { TestTx } from '../support/engine/test-engine.ts';
import { below, secondsFromNow } from '../support/engine/values.ts';
import { inboxRow } from '../support/inbox-rows.ts';
import { odd } from '../support/odd.ts';
import { recorder } from '../support/recorder.ts';
import { tcpProxy } from '../support/tcp-proxy.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
beforeEach(() => db.clear('effects', 'inbox', 'keys', 'outbox'));

const store = db.inbox;
const { handlerOf, write } = handlingOn(db);
const handle = handlerOf(store);

const effects = async () => (await db.effects.all()).sort();
const states = async () => await db.rows('inbox', {}, { columns: ['state', 'retry_count', 'last_error'] });
const nothing = { claimed: 0, handled: 0, retried: 0, failed: 0, released: 0, lost: 0 };

describe('what a handler writes takes effect exactly once', () => {
  test('its rows, its outbox messages and the Processed mark commit together', async () => {
    const row = inboxRow({
      payload: '{"n":1}',
      headers: { tenant: 't', 'relaybox-hops': '2', traceparent: '00-aa-bb-01', 'relaybox-source': 'wire' },
      correlationId: 'c',
      partitionKey: 'k',
    });
    await store.ingest([row]);
    const seen: unknown[] = [];
    const telemetry = recorder();
    const report = await handle(
      async (message, { tx, outbox, signal, logger }) => {
        seen.push(message, signal.aborted);
        logger.info('working');
        await db.effects.write(tx, message.id);
        await outbox.add({ destination: 'events', messageType: 'invoice.created', payload: {} });
      },
      { telemetry },
    );
    expect(report).toEqual({ ...nothing, claimed: 1, handled: 1, workLeft: false, unavailable: undefined });
    expect(seen).toEqual([
      {
        id: row.externalMessageId,
        source: 'shop',
        messageType: 'order.placed',
        payload: { n: 1 },
        headers: { tenant: 't', traceparent: '00-aa-bb-01' },
        correlationId: 'c',
        partitionKey: 'k',
        attempt: 1,
        createdAt: expect.stringMatching(/Z$/),
      },
      false,
    ]);
    expect(await effects()).toEqual([row.externalMessageId]);
    const [added] = await db.rows('outbox', {}, { columns: ['message_type', 'headers'] });
    expect(added).toEqual({
      message_type: 'invoice.created',
      headers: { 'relaybox-hops': '3', traceparent: '00-aa-bb-01' },
    });
    expect(telemetry.counts).toMatchObject({ Claimed: 1, Handled: 1 });
    const [{ id: rowId } = {}] = await db.rows('inbox', {}, { columns: ['id'] });
    expect(telemetry.lines).toContain(
      `working ${JSON.stringify({ rowId, source: 'shop', messageId: row.externalMessageId, messageType: 'order.placed', attempt: 1 })}`,
    );
  });

  test('nothing of an attempt that throws stays; the third one succeeds', async () => {
    await store.ingest([inboxRow()]);
    const attempts: number[] = [];
    const report = await handle(async (message, tools) => {
      attempts.push(message.attempt);
      await write(message, tools);
      await tools.outbox.add({ destination: 'events', messageType: 'x', payload: message.attempt });
      if (message.attempt < 3) throw new Error(`attempt ${message.attempt}`);
    });
    expect(attempts).toEqual([1, 2, 3]);
    expect(report).toMatchObject({ claimed: 3, handled: 1, retried: 2 });
    expect(await effects()).toHaveLength(1);
    expect(await db.rows('outbox', {}, { columns: ['payload'] })).toEqual([{ payload: '3' }]);
    expect(await states()).toEqual([{ state: 2, retry_count: 2, last_error: null }]);
  });

  const swallowed = engine.caughtErrorDoomsTransaction
    ? 'has not succeeded'
    : 'takes effect with what else it wrote';
  test(`a handler that swallows a statement’s error ${swallowed}`, async () => {
    const row = inboxRow({ maxRetries: 0 });
    await store.ingest([row]);
    const report = await handle(async (message, tools) => {
      await write(message, tools);
      await expect(db.refused(tools.tx)).rejects.toThrow();
    });
    const doomed = engine.caughtErrorDoomsTransaction;
    expect(report).toMatchObject({ handled: doomed ? 0 : 1, failed: doomed ? 1 : 0 });
    expect(await effects()).toEqual(doomed ? [] : [row.externalMessageId]);
  });

  test('runs beside each other share the work', async () => {
    const rows = Array.from({ length: 40 }, (_, n) => inboxRow({ partitionKey: n % 2 ? `k${n % 6}` : null }));
    await store.ingest(rows);
    const reports = await Promise.all([1, 2, 3].map(() => handle(write, { batchSize: 5 })));
    // One that found every key in another's hands has ended; the rest is the others'.
    await handle(write);
    expect(reports.reduce((sum, report) => sum + report.lost, 0)).toBe(0);
    expect(await effects()).toEqual(rows.map((row) => row.externalMessageId).sort());
  });
});

describe('a handler says what becomes of a failure', () => {
  test('`Rejected` ends the message at once, `RetryAfter` chooses the time', async () => {
    await store.ingest([inboxRow(), inboxRow(), inboxRow()]);
    const errors = [new Rejected('no such customer'), new RetryAfter(30), new Error('oops')];
    const report = await handle(
      () => {
        throw errors.shift();
      },
      { retry: { firstSeconds: 200, factor: 2, maxSeconds: 300 }, parallelism: 1 },
    );
    expect(report).toMatchObject({ failed: 1, retried: 2, workLeft: false });
    const [rejected, later] = await states();
    expect(rejected).toMatchObject({ state: 3, last_error: 'no such customer' });
    expect(later).toMatchObject({ state: 0 });
    const [, chosen, backedOff] = await db.secondsLeft('inbox', 'next_attempt_at_utc');
    expect(chosen).toBeGreaterThan(28);
    expect(chosen).toBeLessThanOrEqual(30);
    // A fifth of the first wait is jitter.
    expect(backedOff).toBeGreaterThanOrEqual(158);
    expect(backedOff).toBeLessThanOrEqual(200);
  });

  test('it is Failed after its retries, with the last error and without secrets or what no column holds', async () => {
    await store.ingest([inboxRow({ maxRetries: 9 })]);
    const report = await handle(
      () => {
        throw new Error('at postgres://me:s3cret@db/app, password=hunter2\0\ud800', {
          cause: new Error('Authorization: Bearer abcdefghijklmnop'),
        });
      },
      { maxRetries: 1 },
    );
    expect(report).toMatchObject({ claimed: 2, retried: 1, failed: 1 });
    const [row] = await states();
    expect(row).toMatchObject({ state: 3, retry_count: 2 });
    expect(row?.last_error).toBe('Error: at postgres://***@db/app, password=*** ← Error: Authorization: ***');
  });

  test('a payload that is no JSON, or not as the schema wants it, is rejected without a transaction and without quoting it', async () => {
    const schema = z.object({ lines: z.array(z.object({ price: z.coerce.number() })), id: z.string() });
    await store.ingest([
      inboxRow({ payload: 'secret text' }),
      inboxRow({ payload: '{"id":4711,"lines":[{"price":1},{"price":"secret"}]}' }),
      inboxRow({ payload: '{"id":"a","lines":[{"price":"7"}]}' }),
    ]);
    const seen: unknown[] = [];
    const report = await handle<z.infer<typeof schema>>(
      (message) => void seen.push(message.payload.lines[0]?.price),
      {
        schema,
      },
    );
    expect(report).toMatchObject({ handled: 1, failed: 2 });
    expect(seen).toEqual([7]);
    const errors = (await states()).map((row) => row.last_error);
    expect(errors[0]).toContain('payload is not JSON');
    expect(errors[1]).toContain('at lines[1].price, id (2 issues)');
    expect(errors[2]).toBeNull();
    expect(errors.join()).not.toMatch(/secret|4711/);
  });

  test.each(odd)('a handler that throws %s fails its own message, and no other', async (_, thrown) => {
    const rows = [inboxRow({ maxRetries: 0 }), inboxRow(), inboxRow()];
    await store.ingest(rows);
    const report = await handle(async (message, tools) => {
      if (message.id === rows[0]?.externalMessageId) throw thrown();
      await write(message, tools);
    });
    expect(report).toMatchObject({ claimed: 3, handled: 2, failed: 1 });
    expect((await states()).map(({ state }) => state)).toEqual([3, 2, 2]);
    expect((await states())[0]?.last_error).toEqual(expect.stringMatching(/./));
  });

  test('with `raw` the handler gets the text as it is', async () => {
    await store.ingest([inboxRow({ payload: 'a;b' })]);
    const seen: unknown[] = [];
    await handle((message) => void seen.push(message.payload), { raw: true });
    expect(seen).toEqual(['a;b']);
  });
});

describe('time that runs out', () => {
  test('a handler that ignores its signal is cut off; its later writes fail, and the attempt counts', async () => {
    await store.ingest([inboxRow()]);
    let late: Promise<unknown> = Promise.resolve();
    const report = await handle(
      (message, tools) => {
        late = (async () => {
          await write(message, tools);
          // Never idle for long, so that it is not the server's limit that ends it.
          for (let n = 0; n < 100; n++) await db.dawdle(tools.tx, 0.02);
          await write(message, tools);
        })();
        return late;
      },
      { deadline: Deadline.in(1_550) },
    );
    expect(report).toMatchObject({ claimed: 1, handled: 0, retried: 1, workLeft: true });
    await expect(late).rejects.toThrow();
    expect(await effects()).toEqual([]);
    const [row] = await states();
    expect(row).toMatchObject({ state: 0, retry_count: 1 });
    expect(row?.last_error).toContain('the handler did not end within 1.');
  });

  test('a schema that never settles is cut off too, and the attempt counts', async () => {
    await store.ingest([inboxRow({ maxRetries: 0 })]);
    const never = () => new Promise<never>(() => undefined);
    const schema = { '~standard': { version: 1 as const, vendor: 'x', validate: never } };
    const handling = handle(write, { deadline: Deadline.in(1_550), schema });
    const report = await Promise.race([handling, sleep(5_000, 'it hangs')]);
    expect(report).toMatchObject({ claimed: 1, handled: 0, failed: 1 });
    expect((await states())[0]?.last_error).toContain('did not end within');
  });

  test('one that was begun late is given back, uncounted', async () => {
    await store.ingest([inboxRow(), inboxRow(), inboxRow()]);
    const report = await handle(
      async (message, tools) => {
        const first = (await effects()).length === 0;
        if (!first) await sleep(5_000, undefined, { signal: tools.signal });
        await sleep(first ? 200 : 0);
        await write(message, tools);
      },
      { deadline: Deadline.in(800), parallelism: 1 },
    );
    expect(report).toMatchObject({ claimed: 3, handled: 1, retried: 0, released: 2, workLeft: true });
    expect((await states()).map((row) => row.retry_count)).toEqual([0, 0, 0]);
  });

  test('without time nothing is claimed, and 0 or less is a valid time', async () => {
    await store.ingest([inboxRow()]);
    for (const ms of [50, 0, -1_000]) {
      expect(await handle(write, { deadline: Deadline.in(ms) })).toMatchObject({
        claimed: 0,
        workLeft: true,
      });
    }
    expect(await states()).toEqual([{ state: 0, retry_count: 0, last_error: null }]);
  });

  test('at shutdown what runs may end, and the rest is given back', async () => {
    await store.ingest([inboxRow(), inboxRow(), inboxRow()]);
    const stop = new AbortController();
    const report = await handle(
      async (message, tools) => {
        stop.abort();
        await sleep(50);
        await write(message, tools);
      },
      { signal: stop.signal, parallelism: 1 },
    );
    expect(report).toMatchObject({ claimed: 3, handled: 1, released: 2, workLeft: true });
    const cut = await handle(() => sleep(5_000), {
      signal: AbortSignal.timeout(50),
      drainMs: 50,
      parallelism: 2,
    });
    expect(cut).toMatchObject({ claimed: 2, handled: 0, retried: 0, released: 2 });
  });

  test('the lease bounds a handler as the invocation does', async () => {
    await store.ingest([inboxRow({ maxRetries: 0 })]);
    const told: boolean[] = [];
    const report = await handle(
      async (_, { signal }) => {
        await sleep(5_000, undefined, { signal }).catch(() => undefined);
        told.push(signal.aborted);
        throw new Error('aborted');
      },
      { leaseMs: 1_550 },
    );
    expect(told).toEqual([true]);
    expect(report).toMatchObject({ failed: 1, lost: 0 });
  });

  test('a lease that is lost while the handler runs undoes what it wrote', async () => {
    await store.ingest([inboxRow()]);
    const telemetry = recorder();
    let times = 0;
    const report = await handle(
      async (message, tools) => {
        await write(message, tools);
        if (++times === 1) await db.update('inbox', { locked_until_utc: secondsFromNow(-1) });
      },
      { telemetry },
    );
    expect(report).toMatchObject({ claimed: 2, handled: 1, lost: 1 });
    expect(telemetry.counts.LostLeases).toBe(1);
    expect(await effects()).toHaveLength(1);
  });
});

describe('a database that goes away is no failure of the message', () => {
  test('one that no connection reaches gives the messages back, uncounted, and ends the run', async () => {
    await store.ingest([inboxRow(), inboxRow(), inboxRow()]);
    const proxy = await tcpProxy(db.url);
    const away = db.instance({ url: proxy.url, max: 2 });
    const report = await handlerOf({
      ...away.inbox,
      claim: store.claim,
      release: store.release,
    })(
      async (message, tools) => {
        await write(message, tools);
        await proxy.close();
        await write(message, tools);
      },
      { parallelism: 1 },
    );
    await away.end();
    expect(report).toMatchObject({ claimed: 3, handled: 0, retried: 0, released: 3, workLeft: true });
    expect(report.unavailable).toBeDefined();
    expect((await states()).map((row) => [row.state, row.retry_count])).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
    expect(await effects()).toEqual([]);
  });

  const poisons: Record<string, TestHandler> = {
    'ends its own connection': (_, { tx }) => db.endSession(tx),
    ...(engine.endsIdleTransactions ? { 'leaves its transaction idle beyond a limit': idle } : {}),
    'throws while a statement of it runs': async (_, { tx }) => {
      db.dawdle(tx, 6).catch(() => undefined);
      await sleep(50);
      throw new Error('the payment service said 422');
    },
    'has a commit without an answer': (_, { tx }) => db.loseCommit(tx),
  };
  test.each(Object.keys(poisons))(
    'a message that %s each time is counted, ends in Failed, and holds no other up',
    async (poison) => {
      const [bad, ...good] = [inboxRow({ maxRetries: 1 }), inboxRow(), inboxRow()];
      await store.ingest([bad as NewInboxRow, ...good]);
      const report = await handle(
        async (message, tools) => {
          await (message.id === bad?.externalMessageId ? poisons[poison]?.(message, tools) : undefined);
          await write(message, tools);
        },
        { parallelism: 1 },
      );
      expect(report).toMatchObject({
        handled: 2,
        retried: 1,
        failed: 1,
        released: 0,
        unavailable: undefined,
      });
      expect((await states()).map(({ state }) => state)).toEqual([3, 2, 2]);
      expect(await effects()).toEqual(good.map((row) => row.externalMessageId));
    },
  );

  test('an error that only looks like one of the database’s counts', async () => {
    await store.ingest([inboxRow({ maxRetries: 0 })]);
    const report = await handle(() => {
      throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    });
    expect(report).toMatchObject({ failed: 1, unavailable: undefined });
  });

  test.each([true, false])(
    'a commit whose answer is lost in an outage is not charged, and takes effect once (it happened: %s)',
    async (happened) => {
      await store.ingest([inboxRow()]);
      let lose = true;
      const deaf: typeof store = {
        ...store,
        reachable: async () => false,
        begin: async (limits) => {
          const transaction = await store.begin(limits);
          const commit = async (): Promise<void> => {
            if (!lose) return await transaction.commit();
            lose = false;
            await (happened ? transaction.commit() : transaction.destroy());
            throw Object.assign(new Error('no answer'), { code: 'RELAYBOX_DATABASE_UNAVAILABLE' });
          };
          return withCommit(transaction, commit);
        },
      };
      const report = await handlerOf(deaf)(write);
      expect(report).toMatchObject({ claimed: 1, retried: 0, failed: 0, released: happened ? 0 : 1 });
      expect((await states())[0]?.retry_count).toBe(0);
      await handle(write);
      expect(await effects()).toHaveLength(1);
      expect(await states()).toEqual([{ state: 2, retry_count: 0, last_error: null }]);
    },
  );
});

/** The limit is the handler's own to set, within its transaction. */
async function idle(_: unknown, { tx }: { tx: TestTx }): Promise<void> {
  await tx.query('SET LOCAL idle_in_transaction_session_timeout = 50', []);
  await sleep(200);
  await tx.query('SELECT 1', []);
}

describe('a handler that kills its function', () => {
  test('nineteen of its batch succeed, and it ends Failed with a reason that names the lost leases', async () => {
    const rows = Array.from({ length: 20 }, () => inboxRow({ maxRetries: 2 }));
    await store.ingest(rows);
    const killer = rows[7]?.externalMessageId;
    const deaths: number[] = [];
    // A killed function writes nothing more: what it had claimed stays as it is until the leases run out.
    for (let life = 1; life <= 30; life++) {
      let killed = false;
      const mortal: typeof store = {
        ...store,
        markProcessed: async (...args) => (killed ? undefined : await store.markProcessed(...args)),
        markFailed: async (...args) =>
          killed ? await new Promise(() => undefined) : store.markFailed(...args),
        release: async (...args) => (killed ? await new Promise(() => undefined) : store.release(...args)),
      };
      const run = handlerOf(mortal)(
        async (message, tools) => {
          if (killed) throw new Error('dead');
          if (message.id === killer) {
            killed = true;
            deaths.push(message.attempt);
            throw new Error('dead');
          }
          await write(message, tools);
        },
        { leaseMs: 60_000 },
      );
      const ended = await Promise.race([
        run,
        (async () => {
          while (!killed) await sleep(5);
          await sleep(50);
          return undefined;
        })(),
      ]);
      if (ended?.claimed === 0) break;
      await db.expireInboxLeases();
    }
    expect(deaths).toEqual([1, 2, 3]);
    expect(await effects()).toEqual(
      rows
        .map((row) => row.externalMessageId)
        .filter((id) => id !== killer)
        .sort(),
    );
    const columns = ['external_message_id', 'last_error'] as const;
    expect(await db.rows('inbox', { state: 3 }, { columns })).toEqual([
      { external_message_id: killer, last_error: expect.stringContaining('its lease ran out 3 times') },
    ]);
    expect(await db.count('inbox', { state: below(2) })).toBe(0);
  });
});
