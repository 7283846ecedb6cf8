import fc from 'fast-check';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { MessageRefused } from '../../../shared/message/errors.ts';
import { messageId, newId } from '../../../shared/message/id.ts';
import type { NewMessage } from '../../../shared/message/message.ts';
import { withMessageContext } from '../../../shared/outbox/context.ts';
import { postgresOutbox } from '../../../shared/store/postgres/producer.ts';
import { createMigratedDatabase, type MigratedDatabase } from '../../support/migrated.ts';

// A zone with half an hour, in the database and not here: every instant has to be the database's.
let db: MigratedDatabase;
let client: pg.PoolClient;
const outbox = postgresOutbox();

beforeAll(async () => {
  db = await createMigratedDatabase({ timezone: 'Asia/Kolkata' });
});
afterAll(() => db.drop());
beforeEach(async () => {
  client = await db.pool.connect();
  await client.query('BEGIN');
});
afterEach(async () => {
  await client.query('ROLLBACK');
  client.release();
  await db.pool.query('DELETE FROM outbox_messages');
});

function message(part: Partial<NewMessage> = {}): NewMessage {
  return { destination: 'orders', messageType: 'order.placed', payload: { n: 1 }, ...part };
}

async function rows(): Promise<Record<string, unknown>[]> {
  const { rows: found } = await client.query('SELECT *, id::text FROM outbox_messages ORDER BY sequence');
  return found;
}

test('one message answers one result, a list as many, in their order', async () => {
  const one = await outbox.add(client, message());
  expect(one).toEqual({ id: expect.any(String), added: true });
  const ids = [newId(), newId(), newId()].reverse();
  const [first, second, third] = await outbox.add(client, [
    message({ id: ids[0] as string }),
    message({ id: ids[1] as string }),
    message({ id: ids[2] as string }),
  ]);
  expect([first.id, second.id, third.id]).toEqual(ids);
  expect((await rows()).map((row) => row['id'])).toEqual([one.id, ...ids]);
  expect(await outbox.add(client, [])).toEqual([]);
});

test("a row has every field, and the database's time", async () => {
  const full = message({
    id: newId(),
    payload: { text: 'ü😀\uffff', n: 10n ** 20n },
    headers: { tenant: 'a', 'Ünï "code"': '\u0001\uffff' },
    correlationId: 'c-1',
    partitionKey: 'order 1',
    maxRetries: 3,
  });
  await outbox.add(client, full);
  const [row] = await rows();
  expect(row).toMatchObject({
    id: full.id,
    destination: 'orders',
    message_type: 'order.placed',
    headers: full.headers,
    correlation_id: 'c-1',
    partition_key: 'order 1',
    next_attempt_at_utc: null,
    retry_count: 0,
    max_retries: 3,
    state: 0,
    held: false,
    sequence: expect.any(String),
  });
  expect(row?.['payload']).toBe('{"text":"ü😀\\uffff","n":"100000000000000000000"}');
  const { rows: times } = await client.query(
    `SELECT created_at_utc BETWEEN now() AND clock_timestamp() AS created FROM outbox_messages`,
  );
  expect(times).toEqual([{ created: true }]);
});

test('a delay is added to the clock of the database, from the time of add, not of BEGIN', async () => {
  await client.query('SELECT pg_sleep(0.05)');
  await outbox.add(client, message({ delaySeconds: 1.5 }));
  const { rows: found } = await client.query(
    `SELECT extract(epoch FROM next_attempt_at_utc - created_at_utc)::float8 AS delay, created_at_utc > now() AS later FROM outbox_messages`,
  );
  expect(found[0].delay).toBeCloseTo(1.5, 2);
  expect(found[0].later).toBe(true);
});

describe('once', () => {
  test('an id that is there already answers added: false and leaves the transaction usable', async () => {
    const id = messageId('order', 1);
    expect(await outbox.add(client, message({ id, payload: 'first' }))).toEqual({ id, added: true });
    expect(await outbox.add(client, message({ id, payload: 'second' }))).toEqual({ id, added: false });
    expect((await rows()).map((row) => row['payload'])).toEqual(['"first"']);
  });

  test('an id given twice in one call is added once, its first time', async () => {
    const id = newId();
    const results = await outbox.add(client, [
      message({ id, payload: 1 }),
      message({ payload: 2 }),
      message({ id: id.toUpperCase(), payload: 3 }),
    ]);
    expect(results.map((result) => result.added)).toEqual([true, true, false]);
    expect((await rows()).map((row) => row['payload'])).toEqual(['1', '2']);
  });

  test('of two transactions with one id, the second waits and then learns that it was added', async () => {
    const id = newId();
    const other = await db.pool.connect();
    await other.query('BEGIN');
    await outbox.add(other, message({ id }));
    const waiting = outbox.add(client, message({ id }));
    await other.query('COMMIT');
    other.release();
    expect(await waiting).toEqual({ id, added: false });
    await client.query('SELECT 1');
  });
});

describe('many', () => {
  test('a list is one round trip, whatever its length up to a thousand', async () => {
    let trips = 0;
    const counting = {
      query: (text: string, values: unknown[]) => {
        trips += 1;
        return client.query(text, values);
      },
    };
    const results = await outbox.add(
      counting,
      Array.from({ length: 1000 }, (_, n) => message({ payload: n })),
    );
    expect(trips).toBe(1);
    expect(results.every((result) => result.added)).toBe(true);
    expect((await rows()).map((row) => Number(row['payload']))).toEqual(results.map((_, n) => n));
    await outbox.add(
      counting,
      [...results, results[0]].map(() => message()),
    );
    expect(trips).toBe(3);
  });

  test('all are checked before any is written; the error says which one it was', async () => {
    const bad = message({ partitionKey: 'x'.repeat(201) });
    await expect(outbox.add(client, [message(), bad])).rejects.toMatchObject({
      field: 'partitionKey',
      actual: '201 characters (message 2 of 2)',
    });
    expect(await rows()).toEqual([]);
  });

  test('large payloads go in several statements of one transaction', async () => {
    const big = 'x'.repeat(900_000);
    const results = await outbox.add(
      client,
      Array.from({ length: 12 }, () => message({ payload: big })),
    );
    expect(results).toHaveLength(12);
    expect(await rows()).toHaveLength(12);
  });
});

test('a statement that fails leaves it to the caller, and nothing of the list is there', async () => {
  const missing = postgresOutbox({ outboxTable: 'nothing_here' });
  await expect(missing.add(client, message())).rejects.toMatchObject({ code: '42P01' });
});

test('what a handler adds carries one hop more, and the trace it runs in', async () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  await withMessageContext({ hops: 2, traceparent }, () =>
    outbox.add(client, [message(), message({ headers: { traceparent: 'mine', a: 'b' } })]),
  );
  await outbox.add(client, message());
  expect((await rows()).map((row) => row['headers'])).toEqual([
    { 'relaybox-hops': '3', traceparent },
    { 'relaybox-hops': '3', traceparent: 'mine', a: 'b' },
    null,
  ]);
});

describe('order per key', () => {
  async function second(serializeKeys: boolean): Promise<'waited' | 'passed'> {
    const keyed = postgresOutbox({ serializeKeys });
    const other = await db.pool.connect();
    await other.query('BEGIN');
    await keyed.add(other, [message({ partitionKey: 'b' }), message({ partitionKey: 'a' })]);
    let waiting = true;
    const adding = keyed
      .add(client, [message({ partitionKey: 'a' }), message({ partitionKey: 'b' })])
      .then(() => {
        waiting = false;
      });
    await new Promise((resolve) => setTimeout(resolve, 100));
    const outcome = waiting ? 'waited' : 'passed';
    await other.query('ROLLBACK');
    other.release();
    await adding;
    return outcome;
  }

  test('serializeKeys lets writers of one key wait for each other, in one order of the keys', async () => {
    expect(await second(true)).toBe('waited');
  });

  test('without it they do not wait', async () => {
    expect(await second(false)).toBe('passed');
  });

  test('the lock comes before the number: sequence order is commit order', async () => {
    const keyed = postgresOutbox({ serializeKeys: true });
    const other = await db.pool.connect();
    await other.query('BEGIN');
    await keyed.add(other, message({ partitionKey: 'k', payload: 'first' }));
    const adding = keyed.add(client, message({ partitionKey: 'k', payload: 'third' }));
    await new Promise((resolve) => setTimeout(resolve, 50));
    await keyed.add(other, message({ partitionKey: 'k', payload: 'second' }));
    await other.query('COMMIT');
    other.release();
    await adding;
    expect((await rows()).map((row) => row['payload'])).toEqual(['"first"', '"second"', '"third"']);
  });
});

describe('waking', () => {
  test('is best effort: a failing, a throwing and a hanging wake all resolve in time', async () => {
    const warnings: string[] = [];
    const telemetry = {
      count: () => undefined,
      logger: { debug() {}, info() {}, warn: (text: string) => warnings.push(text), error() {} },
    };
    const started = performance.now();
    await postgresOutbox({ telemetry, wake: async () => Promise.reject(new Error('no route')) }).wake();
    await postgresOutbox({
      telemetry,
      wake: () => {
        throw new Error('at once');
      },
    }).wake();
    await postgresOutbox({ wake: () => new Promise(() => undefined) }).wake();
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(warnings).toHaveLength(2);
    await postgresOutbox().wake();
  });
});

test('added messages are counted by destination, duplicates not', async () => {
  const counts: unknown[] = [];
  const telemetry = {
    count: (...count: unknown[]) => counts.push(count),
    logger: console,
  };
  const id = newId();
  await postgresOutbox({ telemetry }).add(client, [
    message({ id }),
    message({ id }),
    message({ destination: 'events' }),
  ]);
  expect(counts).toEqual([
    ['Added', 1, 'orders'],
    ['Added', 1, 'events'],
  ]);
});

test('whatever an application writes arrives as it was, or is refused with its field; the transaction goes on', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.string({
      unit: fc.constantFrom('\0', '\ud800', '\udfff', '\ufffe', '\u0001', 'a', '😀', '\\', '"'),
      maxLength: 6,
    }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.jsonValue({ noUnicodeString: false }),
      fc.dictionary(text, text, { maxKeys: 3 }),
      text,
      async (payload, headers, partitionKey) => {
        const id = newId();
        const given = message({ id, payload, headers, partitionKey });
        try {
          await outbox.add(client, given);
        } catch (error) {
          if (!(error instanceof MessageRefused)) throw error;
          expect(error.field).toMatch(/^(headers|partitionKey)/);
          await client.query('SELECT 1');
          return;
        }
        const { rows: found } = await client.query(
          'SELECT payload, headers, partition_key FROM outbox_messages WHERE id = $1',
          [id],
        );
        expect(JSON.parse(found[0].payload)).toEqual(JSON.parse(JSON.stringify(payload)));
        expect(found[0].headers ?? {}).toEqual(headers);
        expect(found[0].partition_key).toBe(partitionKey);
      },
    ),
    { numRuns: 300 },
  );
});

test('in a transaction of REPEATABLE READ too, what was added before it began answers added: false', async () => {
  const id = newId();
  const other = await db.pool.connect();
  await other.query('BEGIN');
  await outbox.add(other, message({ id }));
  await other.query('COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ');
  expect(await outbox.add(other, message({ id }))).toEqual({ id, added: false });
  await other.query('COMMIT');
  other.release();
});

test('tables of other names and in another schema', async () => {
  const tables = { schema: 'Möbel "x"', outboxTable: 'Out?$1', inboxTable: 'in' };
  const named = await createMigratedDatabase({}, tables);
  const other = new pg.Client({ connectionString: named.url });
  await other.connect();
  await other.query('BEGIN');
  const elsewhere = postgresOutbox({ ...tables, serializeKeys: true });
  expect(await elsewhere.add(other, message({ partitionKey: 'k' }))).toMatchObject({ added: true });
  await other.query('COMMIT');
  await other.end();
  await named.drop();
});
