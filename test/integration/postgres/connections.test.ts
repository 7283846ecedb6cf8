import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { DatabaseUnavailable, TransactionError } from '../../../shared/message/errors.ts';
import type { Login } from '../../../shared/store/credentials.ts';
import {
  type ConnectOptions,
  connect,
  type PostgresDatabase,
} from '../../../shared/store/postgres/connections.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { type TcpProxy, tcpProxy } from '../../support/tcp-proxy.ts';

let db: TestDatabase;
const opened: PostgresDatabase[] = [];
const proxies: TcpProxy[] = [];

beforeAll(async () => {
  db = await createDatabase();
  await db.pool.query('CREATE TABLE things (name text)');
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((database) => database.end()));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

afterAll(() => db.drop());

function open(options: ConnectOptions = {}, url = db.url): PostgresDatabase {
  const database = connect({ url }, options);
  opened.push(database);
  return database;
}

async function proxied(): Promise<TcpProxy> {
  const proxy = await tcpProxy(db.url);
  proxies.push(proxy);
  return proxy;
}

async function pid(database: PostgresDatabase): Promise<number> {
  const { rows } = await database.query('SELECT pg_backend_pid() AS pid');
  return Number(rows[0]?.['pid']);
}

async function count(name: string): Promise<number> {
  const { rows } = await db.pool.query('SELECT count(*)::int AS n FROM things WHERE name = $1', [name]);
  return rows[0].n;
}

const limits = { idleMs: 5_000, lockMs: 4_000, statementMs: 3_000 };

test('nothing is opened before the first use, and a connection is used again', async () => {
  const proxy = await proxied();
  const database = open({}, proxy.url);
  expect(proxy.connections()).toBe(0);
  expect(await pid(database)).toBe(await pid(database));
  expect(proxy.connections()).toBe(1);
});

test('outage-proof: a connection that the server ended while idle is replaced without anybody noticing', async () => {
  const database = open();
  const first = await pid(database);
  await db.pool.query('SELECT pg_terminate_backend($1)', [first]);
  await sleep(50);
  expect(await pid(database)).not.toBe(first);
});

test('outage-proof: a connection is closed after a frozen minute, although no timer ran meanwhile', async () => {
  const database = open({ idleMs: 60_000 });
  const first = await pid(database);
  const now = Date.now();
  const clock = vi.spyOn(Date, 'now').mockReturnValue(now + 61_000);
  expect(await pid(database)).not.toBe(first);
  clock.mockRestore();
});

test('a clock that is set back keeps no stale connection', async () => {
  const database = open({ idleMs: 40 });
  const first = await pid(database);
  const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() - 3_600_000);
  await sleep(60);
  expect(await pid(database)).not.toBe(first);
  clock.mockRestore();
});

test('a connection is closed at its age', async () => {
  const database = open({ maxAgeMs: 30 });
  const first = await pid(database);
  await sleep(40);
  expect(await pid(database)).not.toBe(first);
});

test('outage-proof: a connection that died without a word is found out before a statement is risked on it', async () => {
  const proxy = await proxied();
  const database = open({ trustedMs: 0 }, proxy.url);
  await pid(database);
  await sleep(5);
  proxy.silence();
  await database.query(`INSERT INTO things VALUES ('after silence')`);
  expect(await count('after silence')).toBe(1);
});

test('a statement whose answer got lost is not sent twice: it may have had its effect', async () => {
  const proxy = await proxied();
  const database = open({ queryTimeoutMs: 200 }, proxy.url);
  await pid(database);
  proxy.silenceAfter('lost answer');
  await expect(database.query('INSERT INTO things VALUES ($1)', ['lost answer'])).rejects.toThrow(
    DatabaseUnavailable,
  );
  proxy.heal();
  await pid(database);
  expect(await count('lost answer')).toBe(1);
});

test('a statement that takes too long is given up, and its connection with it', async () => {
  const database = open({ queryTimeoutMs: 100 });
  const first = await pid(database);
  await expect(database.query('SELECT pg_sleep(2)')).rejects.toThrow(/did not answer within 100 ms/);
  expect(await pid(database)).not.toBe(first);
});

test("the time for a statement is asked for each time, so that it can follow an invocation's end", async () => {
  let left = 5_000;
  const database = open({ queryTimeoutMs: () => left });
  await database.query('SELECT pg_sleep(0.05)');
  left = 20;
  await expect(database.query('SELECT pg_sleep(0.5)')).rejects.toThrow(/within 20 ms/);
});

test('an error of the statement keeps its code, and the connection', async () => {
  const database = open();
  const first = await pid(database);
  await expect(database.query('SELECT nonsense')).rejects.toMatchObject({ code: '42703' });
  expect(await pid(database)).toBe(first);
});

test('no more connections than allowed: the next one waits for a free one, and not for ever', async () => {
  const proxy = await proxied();
  const database = open({ max: 2, connectTimeoutMs: 400 }, proxy.url);
  const all = await Promise.all([1, 2, 3, 4, 5].map(() => pid(database)));
  expect(new Set(all).size).toBeLessThanOrEqual(2);
  expect(proxy.connections()).toBe(2);

  const held = await Promise.all([database.connect(), database.connect()]);
  await expect(pid(database)).rejects.toThrow(/all 2 connections .* in use for 400 ms/);
  const next = pid(database);
  held[0]?.release(true);
  expect(await next).toBeGreaterThan(0);
  held[1]?.release();
});

test('a transaction has its limits on the server, and they end with it', async () => {
  const database = open({ max: 1 });
  const transaction = await database.begin({ idleMs: 1234.2, lockMs: 0, statementMs: -5 });
  const show = async (name: string) => (await transaction.tx.query(`SHOW ${name}`)).rows[0][name];
  await transaction.tx.query('SET LOCAL statement_timeout = 1000');
  expect(await show('idle_in_transaction_session_timeout')).toBe('1235ms');
  // Zero would switch it off.
  expect(await show('lock_timeout')).toBe('1ms');
  expect(await show('transaction_isolation')).toBe('read committed');
  await transaction.commit();
  const { rows } = await database.query('SHOW idle_in_transaction_session_timeout');
  expect(rows[0]).toEqual({ idle_in_transaction_session_timeout: '0' });
});

test('atomic: what commits is there, what rolls back is not, and the connection serves the next one', async () => {
  const database = open({ max: 1 });
  const committed = await database.begin(limits);
  await committed.tx.query(`INSERT INTO things VALUES ('committed')`);
  await committed.commit();
  const rolledBack = await database.begin(limits);
  await rolledBack.tx.query(`INSERT INTO things VALUES ('rolled back')`);
  await rolledBack.rollback();
  expect([await count('committed'), await count('rolled back')]).toEqual([1, 0]);
  await expect(committed.commit()).rejects.toThrow(TransactionError);
});

test('a COMMIT that the server answers with ROLLBACK rejects, also where somebody caught the error before it', async () => {
  const transaction = await open().begin(limits);
  await transaction.tx.query(`INSERT INTO things VALUES ('half done')`);
  await transaction.tx.query('SELECT nonsense').catch(() => undefined);
  await expect(transaction.commit()).rejects.toThrow(/rolled back at its COMMIT/);
  expect(await count('half done')).toBe(0);
});

test('a transaction that was ended inside of it rejects at its commit', async () => {
  const transaction = await open().begin(limits);
  await transaction.tx.query('COMMIT');
  await expect(transaction.commit()).rejects.toThrow(TransactionError);
});

test("a COMMIT whose answer is lost rejects: its outcome isn't known", async () => {
  const proxy = await proxied();
  const transaction = await open({}, proxy.url).begin(limits);
  await transaction.tx.query(`INSERT INTO things VALUES ('who knows')`);
  proxy.silenceAfter('COMMIT');
  const commit = transaction.commit();
  await sleep(50);
  await transaction.destroy();
  await expect(commit).rejects.toThrow(/outcome of COMMIT isn't known/);
  expect(await count('who knows')).toBe(1);
});

test('crash-proof: a destroyed transaction lets its locks go at once, in the middle of a statement', async () => {
  const database = open();
  await db.pool.query(`INSERT INTO things VALUES ('locked')`);
  const transaction = await database.begin(limits);
  await transaction.tx.query(`UPDATE things SET name = 'taken' WHERE name = 'locked'`);
  const running = transaction.tx.query('SELECT pg_sleep(0.2)').catch((error: Error) => error.message);
  await transaction.destroy();
  await transaction.rollback();
  expect(await running).toMatch(/terminated/);
  await db.pool.query(`UPDATE things SET name = 'free' WHERE name = 'locked'`);
  expect([await count('taken'), await count('free')]).toEqual([0, 1]);
});

test('destroying a transaction after its end leaves its connection to whoever has it now', async () => {
  const database = open({ max: 1 });
  const transaction = await database.begin(limits);
  await transaction.commit();
  const first = await pid(database);
  await transaction.destroy();
  expect(await pid(database)).toBe(first);
});

test('outage-proof: a transaction begins on another connection where the first one is dead', async () => {
  const database = open();
  const first = await pid(database);
  await db.pool.query('SELECT pg_terminate_backend($1)', [first]);
  const transaction = await database.begin(limits);
  await transaction.tx.query('SELECT 1');
  await transaction.rollback();
});

test('a transaction left open by somebody is never returned to the pool', async () => {
  const database = open({ max: 1 });
  const first = await database.withClient(async (client) => {
    await client.query(`BEGIN; INSERT INTO things VALUES ('left open')`);
    return (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid;
  });
  expect(await pid(database)).not.toBe(first);
  expect(await count('left open')).toBe(0);
});

test('outage-proof: a connection to what has become a standby is left for a new one, and the error says so where that is one too', async () => {
  const standby = await createDatabase({ default_transaction_read_only: 'on' });
  const database = open({}, standby.url);
  await expect(database.begin(limits)).rejects.toThrow(/read-only/);
  await expect(database.query('CREATE TABLE t ()')).rejects.toMatchObject({ code: '25006' });
  const name = new URL(standby.url).pathname.slice(1);
  await database.query('SELECT 1');
  await db.pool.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
  await database.query('CREATE TABLE written_after_failover ()');
  await database.end();
  await standby.drop();
});

test('a login that is refused is followed by the next one: a rotation is under way', async () => {
  const user = new URL(db.url).username;
  const asked: string[] = [];
  const login = (name: string, password: string) => async (): Promise<Login> => {
    asked.push(name);
    return { user, password };
  };
  const right = decodeURIComponent(new URL(db.url).password);
  const logins = () => [
    login('cached', 'old-secret'),
    login('current', 'old-secret'),
    async () => undefined,
    login('pending', right),
    login('never', right),
  ];
  const proxy = await proxied();
  expect(await pid(open({ logins }, proxy.url))).toBeGreaterThan(0);
  expect(asked).toEqual(['cached', 'current', 'pending']);
  // The same password isn't tried twice.
  expect(proxy.connections()).toBe(2);
});

test('no error shows a password', async () => {
  const url = new URL(db.url);
  url.password = 'hunter2-secret';
  const wrong = await pid(open({}, url.href)).catch((error: Error) => error);
  expect(wrong).toMatchObject({ code: '28P01' });
  url.port = '1';
  const down = await pid(open({}, url.href)).catch((error: Error) => error);
  expect(down).toBeInstanceOf(DatabaseUnavailable);
  expect((down as Error).message).toMatch(/ECONNREFUSED/);
  for (const error of [wrong, down]) {
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('hunter2');
  }
});

test('behind a proxy nothing is sent at startup that pins or refuses the connection', async () => {
  const url = new URL(db.url);
  const host = {
    host: url.hostname,
    port: Number(url.port),
    database: url.pathname.slice(1),
    user: url.username,
    credentials: { password: async () => decodeURIComponent(url.password) },
  };
  for (const [proxy, name] of [
    [true, ''],
    [false, 'relaybox'],
  ] as const) {
    const database = connect({ ...host, proxy });
    opened.push(database);
    const { rows } = await database.query('SHOW application_name');
    expect(rows[0]).toEqual({ application_name: name });
  }
});

test('a database without TLS is refused where TLS was asked for', async () => {
  const url = new URL(db.url);
  url.searchParams.set('sslmode', 'verify-full');
  await expect(pid(open({}, url.href))).rejects.toThrow(/SSL/);
});
