import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkSchema } from '../../../shared/store/postgres/check.ts';
import { type MigrationReport, migrate } from '../../../shared/store/postgres/migrate.ts';
import { postgresNames } from '../../../shared/store/postgres/names.ts';
import { postgresOutbox } from '../../../shared/store/postgres/producer.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { seedSchema } from '../../support/seed-schema.ts';

const names = postgresNames();
let db: TestDatabase;
let before: Record<string, unknown>;
let report: MigrationReport;
let insertedMeanwhile = 0;

beforeAll(async () => {
  db = await createDatabase();
  await db.pool.query(seedSchema);
  // Without its index a million rows go in faster; the script makes it again.
  await db.pool.query('DROP INDEX ix_outbox_messages_polling');
  // As a service of some age has them: most processed, some failed, some due, many of those made in one moment.
  await db.pool.query(`
    INSERT INTO outbox_messages (id, destination, message_type, payload, created_at_utc, state, processed_at_utc, last_error)
    SELECT lpad(to_hex(2000000 - n), 32, '0')::uuid, 'orders', 'order.placed', '{"order":' || n || '}',
      '2026-01-01Z'::timestamptz + (n / 7) * interval '1 second',
      CASE WHEN n % 100 = 0 THEN 0 WHEN n % 1000 = 1 THEN 3 ELSE 2 END,
      CASE WHEN n % 100 = 0 OR n % 1000 = 1 THEN NULL ELSE now() END,
      CASE WHEN n % 1000 = 1 THEN 'gone' END
    FROM generate_series(1, 1000000) n`);
  await db.pool.query(`
    INSERT INTO inbox_messages (id, source, external_message_id, message_type, payload, created_at_utc, state, processed_at_utc)
    SELECT gen_random_uuid(), 'shop', 'm-' || n, 'order.placed', '{}', now() - n * interval '1 second', n % 5,
      CASE WHEN n % 5 = 2 THEN now() END
    FROM generate_series(1, 5000) n`);
  await db.pool.query(seedSchema);
  before = await evidence();

  let migrating = true;
  const writing = (async () => {
    while (migrating) {
      await insertAsTheSeedDoes(`meanwhile ${insertedMeanwhile}`);
      insertedMeanwhile += 1;
    }
  })();
  report = await migrate(db.pool, names);
  migrating = false;
  await writing;
}, 120_000);
afterAll(() => db.drop());

/** The columns that the .NET package knows, and no others. */
async function insertAsTheSeedDoes(payload: string): Promise<void> {
  await db.pool.query(
    `INSERT INTO outbox_messages (id, destination, message_type, payload, headers, correlation_id, created_at_utc,
       next_attempt_at_utc, retry_count, max_retries, state, locked_until_utc, processed_at_utc, last_error)
     VALUES (gen_random_uuid(), 'orders', 'order.placed', $1, NULL, NULL, now() + interval '5 minutes', NULL, 0, 5, 0, NULL, NULL, NULL)`,
    [payload],
  );
}

/** The file a table is in, and a digest of every row it had before. */
async function evidence(): Promise<Record<string, unknown>> {
  const { rows } = await db.pool.query(`
    SELECT pg_relation_filenode('outbox_messages') AS outbox_file, pg_relation_filenode('inbox_messages') AS inbox_file,
      (SELECT count(*) || ' ' || sum(hashtextextended(id::text || payload || state || created_at_utc || retry_count, 0))
       FROM outbox_messages WHERE payload LIKE '{%') AS outbox,
      (SELECT count(*) || ' ' || sum(hashtextextended(id::text || payload || state || created_at_utc, 0))
       FROM inbox_messages) AS inbox`);
  return rows[0];
}

async function one(text: string): Promise<Record<string, unknown>> {
  const { rows } = await db.pool.query(text);
  return rows[0];
}

describe("a table of the seed's with a million rows", () => {
  test('is not rewritten, and loses no row', async () => {
    expect(await evidence()).toEqual(before);
    expect(String(before['outbox'])).toMatch(/^1000000 /);
    await checkSchema(db.pool, names);
  });

  test('producers went on meanwhile', () => {
    expect(insertedMeanwhile).toBeGreaterThan(5);
  });

  test('unfinished rows are numbered in the order they were made, below all new ones; ended ones stay as they were', async () => {
    expect(
      await one(`SELECT count(*)::int AS wrong FROM (
        SELECT sequence, lag(sequence) OVER (ORDER BY created_at_utc, id) AS previous
        FROM outbox_messages WHERE payload LIKE '{%' AND state NOT IN (2, 4)) o
        WHERE sequence IS NULL OR sequence > 0 OR sequence <= previous`),
    ).toEqual({ wrong: 0 });
    expect(
      await one(`SELECT count(*) FILTER (WHERE state IN (0, 3))::int AS unfinished, count(sequence)::int AS numbered,
        count(*) FILTER (WHERE state = 3 AND processed_at_utc IS NULL)::int AS endless
        FROM outbox_messages WHERE payload LIKE '{%'`),
    ).toEqual({ unfinished: 11_000, numbered: 11_000, endless: 0 });
    const client = await db.pool.connect();
    await client.query('BEGIN');
    const { id } = await postgresOutbox().add(client, {
      destination: 'orders',
      messageType: 'order.placed',
      payload: 'new',
    });
    await client.query('COMMIT');
    client.release();
    expect(
      await one(`SELECT sequence > (SELECT max(sequence) FROM outbox_messages WHERE id <> '${id}') AS last
        FROM outbox_messages WHERE id = '${id}'`),
    ).toEqual({ last: true });
    expect(
      await one(
        'SELECT count(*)::int AS unnumbered FROM outbox_messages WHERE sequence IS NULL AND state = 0',
      ),
    ).toEqual({
      unnumbered: 0,
    });
  });

  test('every inbox row is unfinished, or has its end', async () => {
    const { rows } = await db.pool.query(`
      SELECT state, count(*)::int AS rows, count(processed_at_utc)::int AS ended, count(sequence)::int AS numbered,
        count(last_error)::int AS reasons
      FROM inbox_messages GROUP BY state ORDER BY state`);
    expect(rows).toEqual([
      { state: 0, rows: 1000, ended: 0, numbered: 1000, reasons: 0 },
      { state: 1, rows: 1000, ended: 0, numbered: 1000, reasons: 0 },
      { state: 2, rows: 1000, ended: 1000, numbered: 0, reasons: 0 },
      { state: 3, rows: 1000, ended: 1000, numbered: 1000, reasons: 1000 },
      { state: 4, rows: 1000, ended: 1000, numbered: 0, reasons: 0 },
    ]);
  });

  test("the seed's unique index stays until told otherwise, and is reported", async () => {
    expect(report.seedIdentity).toBe(true);
    expect(await checkSchema(db.pool, names)).toEqual({ version: expect.any(Number), seedIdentity: true });
    const ours = names.placeholders['inbox_index_identity'];
    expect(await one(`SELECT to_regclass('${ours}') IS NULL AS missing`)).toEqual({ missing: true });
    const replaced = await migrate(db.pool, names, { replaceSeedIdentity: true });
    expect(replaced.applied).toEqual(['3 inbox identity', 'drop seed identity']);
    expect(await checkSchema(db.pool, names)).toMatchObject({ seedIdentity: false });
    const insert = `INSERT INTO inbox_messages (consumer, id, source, external_message_id, message_type, payload, created_at_utc)
      VALUES ($1, gen_random_uuid(), 'shop', 'm-1', 't', '{}', now())`;
    await db.pool.query(insert, ['emails']);
    await expect(db.pool.query(insert, ['emails'])).rejects.toMatchObject({ code: '23505' });
    expect(await migrate(db.pool, names)).toEqual({ applied: [], pending: [], seedIdentity: false });
  });
});
