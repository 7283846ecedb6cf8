import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { DatabaseUnavailable } from '../../shared/message/errors.ts';
import {
  type ConnectOptions,
  connect,
  type SqlServerDatabase,
} from '../../shared/store/sqlserver/connections.ts';
import { engine } from '../support/engine/engine.ts';
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts';

const db = await engine.createDatabase();
const limits = { idleMs: 20_000, lockMs: 20_000, statementMs: 20_000 };
const closing: (() => Promise<void>)[] = [];
beforeEach(() => db.clear());
afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closing.splice(0).reverse()) await close();
});
afterAll(() => db.drop());

function open(options: ConnectOptions = {}, url = db.url): SqlServerDatabase {
  const database = connect({ url }, { max: 1, ...options });
  closing.push(() => database.end());
  return database;
}

async function throughProxy(options: ConnectOptions = {}): Promise<{
  readonly proxy: TcpProxy;
  readonly database: SqlServerDatabase;
}> {
  const proxy = await tcpProxy(db.url);
  closing.push(() => proxy.close());
  return { proxy, database: open(options, proxy.url) };
}

async function sessionOf(database: SqlServerDatabase): Promise<number> {
  const { rows } = await database.query('SELECT @@SPID AS [session]');
  return Number(rows[0]?.['session']);
}

async function kill(session: number): Promise<void> {
  const client = await open().connect();
  await client.batch(`KILL ${session}`);
  await client.release();
}

/** A process that was frozen for so long: its timers stood still, and its clock went on. */
function freeze(ms: number): void {
  const now = Date.now() + ms;
  vi.spyOn(Date, 'now').mockReturnValue(now);
}

test('a connection is used again', async () => {
  const database = open();
  expect(await sessionOf(database)).toBe(await sessionOf(database));
});

test('outage-proof: a connection that the server ended while idle is replaced without anybody noticing', async () => {
  const database = open();
  await kill(await sessionOf(database));
  const answered = async () => (await database.query('SELECT 1 AS [one]')).rows;
  await expect.poll(answered, { timeout: 10_000 }).toEqual([{ one: 1 }]);
});

test('outage-proof: after a freeze a dead socket is found in two seconds, not in fifteen', async () => {
  const { proxy, database } = await throughProxy();
  await database.query('SELECT 1 AS [one]');
  proxy.silence();
  freeze(10_000);
  const started = performance.now();
  expect((await database.query('SELECT 2 AS [two]')).rows).toEqual([{ two: 2 }]);
  expect(performance.now() - started).toBeLessThan(5_000);
  expect(proxy.connections()).toBeGreaterThan(1);
});

test('a connection that nobody used for a minute is closed, although no timer ran meanwhile', async () => {
  const { proxy, database } = await throughProxy();
  await database.query('SELECT 1 AS [one]');
  const before = proxy.connections();
  freeze(61_000);
  await database.query('SELECT 1 AS [one]');
  expect(proxy.connections()).toBe(before + 1);
});

test('a statement whose answer got lost is not sent twice: it may have had its effect', async () => {
  const { proxy, database } = await throughProxy({ queryTimeoutMs: 1_500 });
  await database.query('SELECT 1 AS [one]');
  proxy.silence();
  const lost = database.query(`INSERT INTO ${db.tables.effects} ([Id]) VALUES (N'once')`);
  await expect(lost).rejects.toThrow(DatabaseUnavailable);
  await expect.poll(() => db.effects.all()).toEqual(['once']);
});

test('a statement that takes too long is given up, and the next one has another connection', async () => {
  const database = open({ queryTimeoutMs: 500 });
  const first = await sessionOf(database);
  const busy = `DECLARE @until DATETIME2 = DATEADD(second, 5, SYSUTCDATETIME()), @turns BIGINT = 0;
    WHILE SYSUTCDATETIME() < @until SET @turns = @turns + 1;`;
  await expect(database.query(busy)).rejects.toThrow(/did not answer within 500 ms/);
  expect(await sessionOf(database)).not.toBe(first);
});

test('an error of the statement keeps its number, and the connection', async () => {
  const database = open();
  const before = await sessionOf(database);
  await expect(database.query('SELECT 1/0 AS [n]')).rejects.toMatchObject({ number: 8134 });
  expect(await sessionOf(database)).toBe(before);
});

describe('what one borrower did to a session is gone for the next one', () => {
  const looks = `SELECT @@SPID AS [session], @@TRANCOUNT AS [open], @@LOCK_TIMEOUT AS [wait], @@OPTIONS & 16384 AS [abort],
    CASE WHEN OBJECT_ID(N'tempdb..#left') IS NULL THEN 0 ELSE 1 END AS [left],
    (SELECT transaction_isolation_level FROM sys.dm_exec_sessions WHERE session_id = @@SPID) AS [isolation]`;

  test.each([
    ['commit', 'SET TRANSACTION ISOLATION LEVEL SERIALIZABLE'],
    ['commit', 'SET LOCK_TIMEOUT 1'],
    ['rollback', 'SET LOCK_TIMEOUT 1'],
    ['commit', 'SET XACT_ABORT ON'],
    ['rollback', 'SET XACT_ABORT ON'],
    ['commit', 'CREATE TABLE #left ([Id] INT)'],
  ] as const)('after a %s: %s', async (end, text) => {
    const database = open();
    const [clean] = (await database.query(looks)).rows;
    const transaction = await database.begin(limits);
    await transaction.tx.request().batch(text);
    await transaction[end]();
    expect((await database.query(looks)).rows).toEqual([clean]);
  });

  test('and a transaction that was begun inside and not ended: the commit says that it committed nothing', async () => {
    const database = open();
    const transaction = await database.begin(limits);
    await transaction.tx.query(`INSERT INTO ${db.tables.effects} ([Id]) VALUES (N'half')`, []);
    await transaction.tx.request().batch('BEGIN TRANSACTION');
    await expect(transaction.commit()).rejects.toThrow(/was not followed by its COMMIT/);
    expect((await database.query(looks)).rows[0]).toMatchObject({ open: 0 });
    await expect.poll(() => db.effects.all(), { timeout: 10_000 }).toEqual([]);
  });
});

describe('transactions', () => {
  const write = (id: string) => `INSERT INTO ${db.tables.effects} ([Id]) VALUES (N'${id}')`;

  test('atomic: what commits is there, what rolls back is not, and the connection serves the next one', async () => {
    const database = open();
    const committed = await database.begin(limits);
    await committed.tx.query(write('kept'), []);
    await committed.commit();
    const undone = await database.begin(limits);
    await undone.tx.query(write('undone'), []);
    await undone.rollback();
    expect(await db.effects.all()).toEqual(['kept']);
  });

  test('a statement that failed alone leaves the rest of it', async () => {
    const database = open();
    const transaction = await database.begin(limits);
    await transaction.tx.query(write('kept'), []);
    await expect(transaction.tx.query('SELECT 1/0 AS [n]', [])).rejects.toMatchObject({ number: 8134 });
    await transaction.commit();
    expect(await db.effects.all()).toEqual(['kept']);
  });

  test('under XACT_ABORT a failed statement undoes it, and the commit says so', async () => {
    const database = open();
    const transaction = await database.begin(limits);
    await transaction.tx.request().batch('SET XACT_ABORT ON');
    await transaction.tx.query(write('undone'), []);
    await expect(transaction.tx.query('SELECT 1/0 AS [n]', [])).rejects.toThrow();
    await expect(transaction.commit()).rejects.toThrow(/rolled back/);
    expect(await db.effects.all()).toEqual([]);
  });

  test("a COMMIT whose answer is lost rejects: its outcome isn't known", async () => {
    const { proxy, database } = await throughProxy();
    const transaction = await database.begin(limits);
    await transaction.tx.query(write('who knows'), []);
    proxy.silence();
    await expect(transaction.commit()).rejects.toThrow(/outcome of COMMIT isn't known/);
    expect(await db.effects.all()).toEqual(['who knows']);
  }, 30_000);

  test('crash-proof: a destroyed one lets its locks go at once, in the middle of a statement', async () => {
    const database = open({ max: 2 });
    await db.insert('effects', { id: 'a' });
    const transaction = await database.begin(limits);
    await transaction.tx.query(`UPDATE ${db.tables.effects} SET [Id] = N'b'`, []);
    const busy = transaction.tx.query(
      'DECLARE @n BIGINT = 0; WHILE @n < 100000000 SET @n = @n + 1; SELECT @n AS [n];',
      [],
    );
    const refused = expect(busy).rejects.toThrow();
    await transaction.destroy();
    await refused;
    await expect.poll(() => db.update('effects', { id: 'c' }), { timeout: 20_000 }).toBe(1);
    expect(await db.effects.all()).toEqual(['c']);
  });

  test('outage-proof: it begins on another connection where the first one is dead', async () => {
    const { proxy, database } = await throughProxy();
    await database.query('SELECT 1 AS [one]');
    proxy.silence();
    freeze(10_000);
    const transaction = await database.begin(limits);
    await transaction.tx.query(write('there'), []);
    await transaction.commit();
    expect(await db.effects.all()).toEqual(['there']);
  });
});

test('a login that is refused is followed by the next one: a rotation is under way', async () => {
  const { username: user, password } = new URL(db.url);
  const asked: string[] = [];
  const database = open({
    logins: () =>
      ['old', decodeURIComponent(password)].map((secret) => async () => {
        asked.push(secret === 'old' ? 'old' : 'new');
        return { user, password: secret };
      }),
  });
  expect((await database.query('SELECT 1 AS [one]')).rows).toEqual([{ one: 1 }]);
  expect(asked.slice(0, 2)).toEqual(['old', 'new']);
});

test('no error shows a password', async () => {
  const wrong = new URL(db.url);
  wrong.password = 'hunter2';
  const refused = open({}, wrong.href).query('SELECT 1 AS [one]');
  const error: unknown = await refused.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  expect(`${error} ${(error as Error).stack} ${JSON.stringify(error)}`).not.toContain('hunter2');
});
