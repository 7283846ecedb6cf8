import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import sql from 'mssql';
import { afterEach, describe, expect, it } from 'vitest';
import { DatabaseUnavailable, TransactionError } from '../../../shared/message/errors.ts';
import { resolveSettings } from '../../../shared/store/sqlserver/connection-settings.ts';
import {
  type ConnectOptions,
  connect,
  poolConfig,
  type SqlServerDatabase,
} from '../../../shared/store/sqlserver/connections.ts';
import { type TdsReply, type TdsRequest, type TdsServer, tdsServer } from '../../support/tds-server.ts';
import { until } from '../../support/until.ts';

// Against a server that speaks the wire protocol and understands no SQL: what is tested is what connections do.

const ending: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

async function world(
  answer?: (request: TdsRequest) => TdsReply | undefined,
  options: ConnectOptions = {},
): Promise<{ readonly server: TdsServer; readonly database: SqlServerDatabase }> {
  const server = await tdsServer(answer);
  const database = connect({ url: `sqlserver://sa:secret@127.0.0.1:${server.port}/app` }, options);
  ending.push(
    () => server.close(),
    () => database.end(),
  );
  return { server, database };
}

const limits = { idleMs: 5_000, lockMs: 1_500, statementMs: 5_000 };
const rpcs = (server: TdsServer): TdsRequest[] => server.requests.filter(({ kind }) => kind === 'rpc');
const logins = (server: TdsServer): number => server.requests.filter(({ kind }) => kind === 'login').length;

describe('connections to SQL Server', () => {
  it('are opened at the first use, once: the connection that tried the settings is the first one', async () => {
    const { server, database } = await world(({ kind }) => (kind === 'rpc' ? { number: 7 } : undefined));
    expect(server.requests).toEqual([]);
    expect(await database.query('SELECT 7 AS n')).toEqual({ rows: [{ n: 7 }], sets: [[{ n: 7 }]] });
    await database.query('SELECT 7 AS n');
    expect(logins(server)).toBe(1);
  });

  it('declare texts of any length as one type, so that the server plans a batch once, not once per length', async () => {
    const { server, database } = await world();
    for (const value of ['', 'a', 'some more', 'x'.repeat(4_000), null, 'x'.repeat(4_001)]) {
      await database.query('SELECT @p1', [value]);
    }
    const declared = rpcs(server).map((rpc) => rpc.includes('@p1 nvarchar(4000)'));
    expect(declared).toEqual([true, true, true, true, true, false]);
    expect(rpcs(server).at(-1)?.includes('@p1 nvarchar(max)')).toBe(true);
  });

  it('try the next login where one is refused, as after a rotation of the secret', async () => {
    const tried: string[] = [];
    const { server, database } = await world(
      (request) => (request.kind === 'login' && request.connection === 1 ? { error: 18456 } : undefined),
      {
        logins: () =>
          ['old', 'new', 'never'].map((password) => async () => {
            tried.push(password);
            return { user: 'sa', password };
          }),
      },
    );
    await database.query('SELECT 1');
    expect(tried).toEqual(['old', 'new']);
    expect(logins(server)).toBe(2);
  });

  it('tell a refused login with its number, and other errors with theirs', async () => {
    const { database } = await world(({ kind }) => (kind === 'login' ? { error: 18456 } : undefined));
    await expect(database.query('SELECT 1')).rejects.toMatchObject({ code: 'ELOGIN' });
    const other = await world(({ kind }) => (kind === 'rpc' ? { error: 208 } : undefined));
    await expect(other.database.query('SELECT 1')).rejects.toMatchObject({ number: 208 });
  });

  it('run a batch again that was the victim of a deadlock, and no other one', async () => {
    let victims = 2;
    const { server, database } = await world(({ kind }) =>
      kind === 'rpc' ? (victims-- > 0 ? { error: 1205 } : { number: 1 }) : undefined,
    );
    expect((await database.query('UPDATE x')).rows).toEqual([{ n: 1 }]);
    expect(rpcs(server).length).toBe(3);
    const refused = await world(({ kind }) => (kind === 'rpc' ? { error: 2627 } : undefined));
    await expect(refused.database.query('INSERT x')).rejects.toMatchObject({ number: 2627 });
    expect(rpcs(refused.server).length).toBe(1);
  });

  it('to a server that is read-only by now, as after a failover, are replaced', async () => {
    const { server, database } = await world(
      ({ kind, connection }) => (kind === 'rpc' && connection === 1 ? { error: 3906 } : undefined),
      { max: 1 },
    );
    await database.query('UPDATE x');
    expect(rpcs(server).map(({ connection }) => connection)).toEqual([1, 2]);
  });

  it('give a statement up in its time, and are closed: what it began is rolled back there', async () => {
    const { server, database } = await world(
      (request) => (request.kind === 'rpc' && request.includes('WAIT') ? { silent: true } : undefined),
      { queryTimeoutMs: 200, max: 1 },
    );
    const before = performance.now();
    await expect(database.query('WAIT')).rejects.toThrow(DatabaseUnavailable);
    // The driver's own cancel would wait for another five seconds.
    expect(performance.now() - before).toBeLessThan(2_000);
    await database.query('SELECT 1');
    expect(logins(server)).toBe(2);
    expect(server.open()).toBe(1);
  });

  it('are not sent a statement that must not run twice once more, where the answer got lost', async () => {
    const { server, database } = await world(({ kind }) => (kind === 'rpc' ? { hangUp: true } : undefined));
    await expect(database.query('INSERT x')).rejects.toThrow(DatabaseUnavailable);
    expect(rpcs(server).length).toBe(1);
  });

  it('that a freeze has killed are found within two seconds, and replaced', async () => {
    let frozen = false;
    const { server, database } = await world(
      ({ kind, connection }) =>
        frozen && kind === 'batch' && connection === 1 ? { silent: true } : undefined,
      { trustedMs: 20, max: 1 },
    );
    await database.query('SELECT 1');
    frozen = true;
    await sleep(40);
    const before = performance.now();
    await database.query('SELECT 1');
    expect(performance.now() - before).toBeLessThan(4_000);
    expect(rpcs(server).map(({ connection }) => connection)).toEqual([1, 2]);
  });

  it('idle for too long are not used again', async () => {
    const { server, database } = await world(undefined, { idleMs: 20, max: 1 });
    await database.query('SELECT 1');
    await sleep(60);
    await database.query('SELECT 1');
    expect(logins(server)).toBe(2);
  });

  it('say which way a database that is not there failed, within their time', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as { port: number };
    const url = `sqlserver://sa:secret@127.0.0.1:${port}/app`;
    const database = connect({ url }, { connectTimeoutMs: 300 });
    await expect(database.query('SELECT 1')).rejects.toThrow(DatabaseUnavailable);
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => silent.close(resolve));
    await expect(connect({ url }).query('SELECT 1')).rejects.toThrow(DatabaseUnavailable);
  });
});

describe('transactions on SQL Server', () => {
  it('begin at READ COMMITTED with a limit for locks, and commit', async () => {
    const { server, database } = await world(({ kind }) => (kind === 'rpc' ? { number: 1 } : undefined));
    const { tx, executor, commit } = await opened(database);
    await tx.query('INSERT INTO orders VALUES (@p1)', ['a']);
    await executor.query('UPDATE x SET y = @p1', [1]);
    await tx.request().input('id', 'a').query('SELECT @id');
    await commit();
    const kinds = server.requests.map(({ kind }) => kind);
    expect(kinds).toEqual(['login', 'batch', 'begin', 'batch', 'rpc', 'rpc', 'rpc', 'commit']);
    expect(server.requests[3]?.includes('SET LOCK_TIMEOUT 1500')).toBe(true);
  });

  it('leave nothing in the session for the next borrower: it is reset before that', async () => {
    const { server, database } = await world(undefined, { max: 1 });
    const { tx, commit } = await opened(database);
    await tx.query('SET ROWCOUNT 1', []);
    await commit();
    await database.query('SELECT 1');
    const after = server.requests.slice(server.requests.findIndex(({ kind }) => kind === 'commit') + 1);
    expect(after.map(({ kind, reset }) => `${kind} ${reset}`)).toEqual(['batch true', 'rpc false']);
    expect(after[0]?.includes('read committed')).toBe(true);
  });

  it('that the server rolled back are no commit', async () => {
    const { database } = await world((request) =>
      request.kind === 'rpc' ? { error: 1205, ended: 'rollback' } : undefined,
    );
    const { tx, commit } = await opened(database);
    await expect(tx.query('UPDATE x', [])).rejects.toMatchObject({ number: 1205 });
    await expect(commit()).rejects.toThrow(TransactionError);
  });

  it.each(['commit', 'commit and begin'] as const)(
    'that the work ended by a %s say so, and take nothing more',
    async (ended) => {
      const { server, database } = await world((request) =>
        request.includes('COMMIT') ? { ended } : undefined,
      );
      const transaction = await database.begin(limits);
      expect(transaction.endedInside?.()).toBeUndefined();
      await expect(transaction.tx.query('COMMIT', [])).rejects.toThrow(TransactionError);
      expect(transaction.endedInside?.()).toContain('COMMIT');
      await expect(transaction.executor.query('UPDATE x', [])).rejects.toThrow(TransactionError);
      await expect(transaction.tx.query('UPDATE x', [])).rejects.toThrow(TransactionError);
      // An ORM makes its own.
      await expect(transaction.tx.request().query('UPDATE x')).rejects.toThrow(TransactionError);
      await expect(transaction.commit()).rejects.toThrow(TransactionError);
      expect(rpcs(server).length).toBe(1);
      // Asked again when it is over, as who rolls back does.
      expect(transaction.endedInside?.()).toContain('COMMIT');
      await until(() => server.open() === 0, Boolean);
    },
  );

  it('in which another was begun and not ended are not committed, and say so', async () => {
    const { server, database } = await world(({ kind }) =>
      kind === 'commit' ? { nested: true } : undefined,
    );
    const { commit } = await opened(database);
    await expect(commit()).rejects.toThrow(/was not followed by its COMMIT/);
    await until(() => server.open() === 0, Boolean);
  });

  it('whose COMMIT gets no answer have an outcome that nobody knows', async () => {
    const { database } = await world(({ kind }) => (kind === 'commit' ? { hangUp: true } : undefined));
    const { commit } = await opened(database);
    await expect(commit()).rejects.toThrow(/outcome of COMMIT isn't known/);
  });

  it('can be destroyed in mid-statement, and give their place back', async () => {
    const { server, database } = await world(
      (request) => (request.includes('WAIT') ? { silent: true } : undefined),
      { max: 1 },
    );
    const transaction = await database.begin(limits);
    const waiting = expect(transaction.tx.query('WAIT', [])).rejects.toThrow();
    await until(() => rpcs(server).length === 1, Boolean);
    await transaction.destroy();
    await waiting;
    await database.query('SELECT 1');
    expect(server.open()).toBe(1);
  });

  it('are rolled back by rollback, which never rejects', async () => {
    const { server, database } = await world();
    const transaction = await database.begin(limits);
    await transaction.rollback();
    await transaction.rollback();
    expect(server.requests.filter(({ kind }) => kind === 'rollback').length).toBe(1);
    await expect(transaction.commit()).rejects.toThrow(TransactionError);
  });
});

describe('what the driver is told', () => {
  const settings = { host: 'db.example.com', database: 'app', credentials: { secretArn: 'arn' } } as const;
  const pool = { max: 2, connectTimeoutMs: 5_000, idleMs: 60_000, trustedMs: 5_000, maxAgeMs: 1 };

  it('verifies the server by RDS’s roots, and encrypts', async () => {
    const config = await poolConfig(resolveSettings(settings), pool, {});
    const options = config.options as Record<string, unknown>;
    expect(options).toMatchObject({ encrypt: true, trustServerCertificate: false });
    const { ca } = options['cryptoCredentialsDetails'] as { ca: string[] };
    expect(ca.length).toBeGreaterThan(100);
    expect(ca.every((pem) => pem.includes('BEGIN CERTIFICATE'))).toBe(true);
  });

  it('behind a proxy sends none of the settings that would pin the connection', async () => {
    const config = await poolConfig(resolveSettings({ ...settings, proxy: true }), pool, {});
    expect(config.options).toMatchObject({
      enableAnsiNullDefault: null,
      enableImplicitTransactions: null,
      abortTransactionOnError: null,
    });
  });

  it('is in the parts of the driver’s pool that ours stands on', () => {
    const prototype = sql.ConnectionPool.prototype as unknown as Record<string, unknown>;
    for (const name of ['_poolCreate', '_poolValidate', '_poolDestroy', 'acquire', 'release']) {
      expect(typeof prototype[name], name).toBe('function');
    }
  });
});

async function opened(database: SqlServerDatabase) {
  const transaction = await database.begin(limits);
  return {
    tx: transaction.tx,
    executor: transaction.executor,
    commit: () => transaction.commit(),
  };
}
