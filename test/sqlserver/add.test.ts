import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConfigurationError, MessageRefused } from '../../shared/message/errors.ts';
import { messageId, newId } from '../../shared/message/id.ts';
import type { NewMessage } from '../../shared/message/message.ts';
import { connect, type SqlServerDatabase } from '../../shared/store/sqlserver/connections.ts';
import { sqlServerOutbox } from '../../shared/store/sqlserver/producer.ts';
import type { SqlServerTransaction } from '../../shared/store/sqlserver/transaction.ts';
import { engine } from '../support/engine/engine.ts';
import type { ProducerTransaction } from '../support/engine/test-engine.ts';

const db = await engine.createDatabase();
const outbox = sqlServerOutbox();
let database: SqlServerDatabase;
let open: ProducerTransaction;
beforeEach(async () => {
  database = connect({ url: db.url }, { max: 3 });
  open = await db.begin();
});
afterEach(async () => {
  await open.rollback();
  await database.end();
  await db.clear();
});
afterAll(() => db.drop());

/** The transaction as an application has it: the driver's. */
const tx = (): SqlServerTransaction => open.tx as SqlServerTransaction;

function message(part: Partial<NewMessage> = {}): NewMessage {
  return { destination: 'orders', messageType: 'order.placed', payload: { n: 1 }, ...part };
}

const rows = () => db.within(open.tx).rows('outbox');

test('one message answers one result, a list as many, in their order', async () => {
  const one = await outbox.add(tx(), message());
  expect(one).toEqual({ id: expect.any(String), added: true });
  const ids = [newId(), newId(), newId()].reverse();
  const results = await outbox.add(
    tx(),
    ids.map((id) => message({ id })),
  );
  expect(results.map(({ id }) => id)).toEqual(ids);
  expect((await rows()).map(({ id }) => id)).toEqual([one.id, ...ids]);
  expect(await outbox.add(tx(), [])).toEqual([]);
});

test("a row has every field, and the database's time", async () => {
  const full = message({
    id: newId(),
    payload: { text: 'ü\uffff', n: 10n ** 20n },
    headers: { tenant: 'a', 'Ünï "code"': '\u0001\uffff' },
    correlationId: 'c-1',
    partitionKey: 'order 1',
    maxRetries: 3,
  });
  await outbox.add(tx(), full);
  const [row] = await rows();
  expect(row).toMatchObject({
    id: full.id,
    destination: 'orders',
    message_type: 'order.placed',
    payload: '{"text":"ü\\uffff","n":"100000000000000000000"}',
    headers: full.headers,
    correlation_id: 'c-1',
    partition_key: 'order 1',
    next_attempt_at_utc: null,
    retry_count: 0,
    max_retries: 3,
    state: 0,
    held: false,
  });
  const [age] = await db.within(open.tx).secondsLeft('outbox', 'created_at_utc');
  expect(Math.abs(age ?? 99)).toBeLessThan(5);
});

test("a delay is added to the database's clock", async () => {
  await outbox.add(tx(), message({ delaySeconds: 60 }));
  const [left] = await db.within(open.tx).secondsLeft('outbox', 'next_attempt_at_utc');
  expect(left).toBeGreaterThan(50);
  expect(left).toBeLessThanOrEqual(60);
});

describe.each(['ON', 'OFF'])('once, in a transaction with XACT_ABORT %s', (setting) => {
  beforeEach(() => tx().request().batch(`SET XACT_ABORT ${setting}`));

  test('an id that is there already answers added: false and leaves the transaction usable', async () => {
    const id = messageId('order', 1);
    expect(await outbox.add(tx(), message({ id, payload: 'first' }))).toEqual({ id, added: true });
    expect(await outbox.add(tx(), message({ id, payload: 'second' }))).toEqual({ id, added: false });
    await db.effects.write(open.tx, 'beside it');
    await open.commit();
    expect(await db.rows('outbox', {}, { columns: ['payload'] })).toEqual([{ payload: '"first"' }]);
    expect(await db.effects.all()).toEqual(['beside it']);
    open = await db.begin();
  });

  test('an id given twice in one call is added once, its first time', async () => {
    const id = newId();
    const results = await outbox.add(tx(), [
      message({ id, payload: 1 }),
      message({ payload: 2 }),
      message({ id: id.toUpperCase(), payload: 3 }),
    ]);
    expect(results.map(({ added }) => added)).toEqual([true, true, false]);
    expect((await rows()).map(({ payload }) => payload)).toEqual(['1', '2']);
  });

  test('of two transactions with one id, the second waits and then learns that it was added', async () => {
    const id = newId();
    const first = await db.begin();
    await first.add([message({ id })]);
    const waiting = outbox.add(tx(), message({ id }));
    await sleep(200);
    await first.commit();
    expect(await waiting).toEqual({ id, added: false });
    await db.effects.write(open.tx, 'usable');
  });

  test('where the first one rolls back, the second adds it', async () => {
    const id = newId();
    const first = await db.begin();
    await first.add([message({ id })]);
    const waiting = outbox.add(tx(), message({ id }));
    await sleep(200);
    await first.rollback();
    expect(await waiting).toEqual({ id, added: true });
  });
});

test('producers of other ids do not wait for each other', async () => {
  const other = await db.begin();
  await other.add([message()]);
  expect(await outbox.add(tx(), message())).toMatchObject({ added: true });
  await other.rollback();
});

test('serializeKeys lets writers of one key wait for each other: sequence order is commit order', async () => {
  const keyed = sqlServerOutbox({ serializeKeys: true });
  const first = await db.begin();
  await keyed.add(first.tx, message({ partitionKey: 'k', payload: 1 }));
  const waiting = keyed.add(tx(), message({ partitionKey: 'k', payload: 2 }));
  expect(await Promise.race([waiting, sleep(300, 'waits')])).toBe('waits');
  await first.commit();
  await waiting;
  await open.commit();
  expect((await db.rows('outbox')).map(({ payload }) => payload)).toEqual(['1', '2']);
  open = await db.begin();
});

describe('a session with QUOTED_IDENTIFIER OFF', () => {
  const columns =
    '[Id], [Destination], [MessageType], [Payload], [CreatedAtUtc], [RetryCount], [MaxRetries], [State]';
  const values = `NEWID(), N'orders', N'order.placed', N'{}', SYSDATETIMEOFFSET(), 0, 5, 0`;

  test("may insert into the outbox: error 1934 does not hit an application's own INSERT", async () => {
    const client = await database.connect();
    try {
      await client.batch('SET QUOTED_IDENTIFIER OFF');
      await client.batch(`INSERT INTO ${db.tables.outbox} (${columns}) VALUES (${values})`);
    } finally {
      await client.release();
    }
    const [row] = await db.rows('outbox');
    expect(row).toMatchObject({ state: 0, held: false, sequence: expect.any(String) });
    expect(Number(row?.bucket)).toBeLessThan(64);
  });

  test('may do so from a procedure that was made in such a session', async () => {
    const client = await database.connect();
    try {
      await client.batch('SET QUOTED_IDENTIFIER OFF');
      await client.batch(
        `CREATE PROCEDURE dbo.OldCode AS INSERT INTO ${db.tables.outbox} (${columns}) VALUES (${values})`,
      );
      await client.batch('SET QUOTED_IDENTIFIER ON');
      await client.batch('EXEC dbo.OldCode');
    } finally {
      await client.release();
    }
    expect(await db.count('outbox')).toBe(1);
  });

  test('may add', async () => {
    await tx().request().batch('SET QUOTED_IDENTIFIER OFF');
    expect(await outbox.add(tx(), message())).toMatchObject({ added: true });
    await tx().request().batch('SET QUOTED_IDENTIFIER ON');
  });
});

describe('many', () => {
  test('a list is one round trip, whatever its length up to a thousand', async () => {
    let trips = 0;
    const counting = {
      query: (text: string, values: unknown[]) => {
        trips += 1;
        return tx().query(text, values);
      },
    };
    const results = await outbox.add(
      counting,
      Array.from({ length: 1000 }, (_, n) => message({ payload: n })),
    );
    expect(trips).toBe(1);
    expect(results.every(({ added }) => added)).toBe(true);
    expect((await rows()).map(({ payload }) => Number(payload))).toEqual(results.map((_, n) => n));
  });

  test('all are checked before any is written; the error says which one it was', async () => {
    const wrong = outbox.add(tx(), [message(), message({ correlationId: 'x'.repeat(201) })]);
    await expect(wrong).rejects.toThrow(MessageRefused);
    expect(await rows()).toEqual([]);
  });
});

test('outside of a transaction it is refused, and nothing is written', async () => {
  const pool = await database.pool();
  await expect(outbox.add(pool, message())).rejects.toThrow(ConfigurationError);
  const autocommit = { query: (text: string, values: unknown[]) => database.query(text, values) };
  await expect(outbox.add(autocommit, message())).rejects.toThrow(/without a transaction/);
  expect(await db.count('outbox')).toBe(0);
});
