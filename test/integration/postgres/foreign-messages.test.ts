import { randomInt, randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ingest } from '../../../shared/inbox/ingest.ts';
import { transact } from '../../../shared/inbox/transact.ts';
import {
  type ConnectOptions,
  connect,
  type PostgresDatabase,
} from '../../../shared/store/postgres/connections.ts';
import { postgresInboxStore } from '../../../shared/store/postgres/inbox-store.ts';
import { migrate } from '../../../shared/store/postgres/migrate.ts';
import { postgresNames } from '../../../shared/store/postgres/names.ts';
import { prepared } from '../../../shared/store/postgres/prepared.ts';
import { cli } from '../../support/cli.ts';
import { createDatabase } from '../../support/database.ts';
import { type ForeignServer, foreignServer } from '../../support/foreign-server.ts';
import { limits } from '../../support/inbox-rows.ts';
import { createMigratedDatabase, type MigratedDatabase } from '../../support/migrated.ts';
import { until } from '../../support/until.ts';

// With lc_messages set to another language, a server's errors keep their codes and nothing else.
let db: MigratedDatabase;
let foreign: ForeignServer;
const opened: PostgresDatabase[] = [];

beforeAll(async () => {
  db = await createMigratedDatabase();
  await db.pool.query('CREATE TABLE things (id int PRIMARY KEY, parent int)');
  foreign = await foreignServer(db.url);
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((database) => database.end()));
});
afterAll(async () => {
  await foreign.close();
  await db.drop();
});

function open(options: ConnectOptions = {}, url = foreign.url): PostgresDatabase {
  const database = connect({ url }, options);
  opened.push(database);
  return database;
}
const pid = async (database: PostgresDatabase) =>
  (await database.query('SELECT pg_backend_pid() AS pid')).rows[0]?.['pid'];
const elsewhere = (path: string, change: (url: URL) => void = () => undefined): string => {
  const url = new URL(foreign.url);
  url.pathname = path;
  change(url);
  return url.href;
};

/** Text of four-byte characters that doesn't compress. */
const wide = (characters: number): string =>
  String.fromCodePoint(...Array.from({ length: characters }, () => 0x10000 + randomInt(0x10000)));

test('the server speaks another language', async () => {
  const error: unknown = await open()
    .query('SELECT 1 / 0')
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(pg.DatabaseError);
  expect(error).toMatchObject({ code: '22012', severity: 'ОШИБКА', message: 'нечто пошло не так' });
});

describe('whatever language the server speaks', () => {
  test('a row that it refuses is kept as unreadable, and costs only itself', async () => {
    const text = (stringValue: string) => ({ stringValue });
    const records = [wide(300), 'fine'].map((id) => ({
      messageId: randomUUID(),
      body: '{}',
      messageAttributes: { 'relaybox-id': text(id), 'relaybox-type': text('t') },
    }));
    const store = postgresInboxStore(open(), db.tables);
    // An index entry of two identifiers and an id that don't compress is too large: 54000.
    const answer = await ingest(records, { store, consumer: wide(200), source: wide(200) });
    expect(answer).toEqual({ batchItemFailures: [] });
    const { rows } = await db.pool.query('SELECT state, last_error FROM inbox_messages ORDER BY state');
    expect(rows).toMatchObject([
      { state: 0 },
      { state: 3, last_error: expect.stringContaining('the database refused it: error: нечто пошло не так') },
    ]);
  });

  test.each([
    ['a duplicate of its own', 'INSERT INTO things VALUES (1), (1)'],
    [
      'a lock that it waits for too long',
      'SET LOCAL lock_timeout = 100; UPDATE things SET parent = 2 WHERE id = 0',
    ],
    ['a table that is not there', 'SELECT * FROM no_such_table'],
    ['a connection that the server ends', 'SELECT pg_terminate_backend(pg_backend_pid())'],
  ])('%s is the handler’s failure, and no outage', async (_, statement) => {
    await db.pool.query('INSERT INTO things VALUES (0, 0) ON CONFLICT DO NOTHING');
    const holder = await db.pool.connect();
    await holder.query('BEGIN; UPDATE things SET parent = 1 WHERE id = 0');
    const store = postgresInboxStore(open(), db.tables);
    const signal = new AbortController().signal;
    const end = await transact(
      { store, limitMs: 1_500, fullTime: true, signal, drainMs: 1 },
      async (begin) => {
        const { tx } = await begin();
        await tx.query(statement);
        return { commit: true, value: undefined };
      },
    );
    await holder.query('ROLLBACK');
    holder.release();
    expect(end).toMatchObject({
      kind: 'failure',
      failure: { kind: 'failed', reason: expect.stringContaining('нечто пошло не так') },
    });
  });

  test('a COMMIT that the server refuses is an error of its own, and no unknown outcome', async () => {
    await db.pool.query(
      'ALTER TABLE things ADD FOREIGN KEY (parent) REFERENCES things DEFERRABLE INITIALLY DEFERRED NOT VALID',
    );
    const transaction = await open().begin(limits);
    await transaction.tx.query('INSERT INTO things VALUES (7, 8)');
    await expect(transaction.commit()).rejects.toMatchObject({ code: '23503' });
  });

  test('a connection that the server ended is left for a new one, and nobody hears of it', async () => {
    const database = open();
    const first = await pid(database);
    await db.pool.query('SELECT pg_terminate_backend($1, 5000)', [first]);
    expect(await pid(database)).not.toBe(first);
    const transaction = await database.begin(limits);
    await transaction.rollback();
  });

  test('a prepared statement that is gone is prepared again', async () => {
    const database = open({ max: 1 });
    const marked = prepared('SELECT $1::int + 1 AS sum');
    await database.query(marked, [1]);
    await database.query('DEALLOCATE ALL');
    expect((await database.query(marked, [2])).rows).toEqual([{ sum: 3 }]);
  });

  test('a login that is refused is followed by the next one', async () => {
    const { username: user, password } = new URL(db.url);
    const logins = () => [async () => ({ user, password: 'old' }), async () => ({ user, password })];
    expect(await pid(open({ logins }))).toBeGreaterThan(0);
  });

  test('a migration waits for a lock, and goes on when it is free', async () => {
    const empty = await createDatabase();
    const names = postgresNames({});
    await migrate(empty.pool, names);
    await empty.pool.query(`DELETE FROM ${names.version}`);
    const holder = await empty.pool.connect();
    await holder.query(`BEGIN; LOCK TABLE ${names.outbox} IN ACCESS SHARE MODE`);
    const wire = await foreignServer(empty.url);
    const pool = new pg.Pool({ connectionString: wire.url });
    const migrating = migrate(pool, names);
    await until(wire.errors, (count) => count > 0, 20_000);
    await holder.query('ROLLBACK');
    holder.release();
    await expect(migrating).resolves.toMatchObject({ pending: [] });
    await pool.end();
    await wire.close();
    await empty.drop();
  });

  test('the command line has the same codes', async () => {
    const empty = await createDatabase();
    const ends = async (url: string): Promise<unknown> => {
      const run = await cli(['status', '--json', '--url', url]);
      return [run.code, (run.json() as { error: { code: string } }).error.code];
    };
    const { pathname } = new URL(empty.url);
    expect(await ends(elsewhere(pathname))).toEqual([1, 'RELAYBOX_SCHEMA']);
    expect(await ends(elsewhere('/absent'))).toEqual([3, 'RELAYBOX_DATABASE_UNAVAILABLE']);
    const wrong = elsewhere(pathname, (url) => {
      url.password = 'wrong';
    });
    expect(await ends(wrong)).toEqual([3, 'RELAYBOX_DATABASE_UNAVAILABLE']);
    await empty.drop();
  });
});
