import { randomUUID } from 'node:crypto';
import type { SqlExecutor } from '../../../shared/store/executor.ts';
import type { Transaction } from '../../../shared/store/inbox-store.ts';
import { connect, type SqlServerDatabase } from '../../../shared/store/sqlserver/connections.ts';
import { sqlServerInboxStore } from '../../../shared/store/sqlserver/inbox-store.ts';
import { migrate } from '../../../shared/store/sqlserver/migrate.ts';
import { type Names, sqlServerNames } from '../../../shared/store/sqlserver/names.ts';
import { recordCycle, sqlServerOperations } from '../../../shared/store/sqlserver/operations.ts';
import { sqlServerOutboxStore } from '../../../shared/store/sqlserver/outbox-store.ts';
import { insertRows, sqlServerOutbox } from '../../../shared/store/sqlserver/producer.ts';
import { addSql } from '../../../shared/store/sqlserver/sql/add.ts';
import type { SqlServerTransaction } from '../../../shared/store/sqlserver/transaction.ts';
import { assemble, type Connected, type EngineParts, watched } from './assemble.ts';
import { inert } from './inert.ts';
import { createSqlServerDatabase, serverUrl } from './sqlserver-database.ts';
import { sqlServerDialect, tableNames } from './sqlserver-dialect.ts';
import type { DatabaseOptions, EngineDatabase, TestEngine, TestTx } from './test-engine.ts';

/** SQL Server: the one that RELAYBOX_SQLSERVER_URL names. */
export const sqlserver: TestEngine = {
  name: 'sqlserver',
  caughtErrorDoomsTransaction: false,
  endsIdleTransactions: false,
  repairsKeysByName: false,
  countsCodeUnits: true,
  many: 2_000,
  shortMs: 10_000,
  createDatabase: create,
  createEmpty: async () => (serverUrl ? await createSqlServerDatabase(serverUrl, snapshotAsked()) : inert()),
};

async function create({ tables = {}, snapshot }: DatabaseOptions = {}): Promise<EngineDatabase> {
  // Without a server no test of the file runs; its first lines do.
  if (!serverUrl) return inert();
  const created = await createSqlServerDatabase(serverUrl, snapshot ?? snapshotAsked());
  const { url } = created;
  const names = sqlServerNames(tables);
  const looking = connect({ url }, { max: 6 });
  await migrate(looking, names);
  await looking.query(
    'CREATE TABLE dbo.Effects ([Place] BIGINT IDENTITY PRIMARY KEY, [Id] NVARCHAR(400) NOT NULL)',
  );
  const own = connected(url, 16, names);
  return assemble({
    ...sessions(looking),
    name: 'sqlserver',
    url,
    tables: tableNames(names),
    dialect: sqlServerDialect(names),
    run: async (text, values) => (await looking.query(text, values)).rows,
    own,
    connect: (to, max) => connected(to, max, names),
    ...sqlServerOperations({ source: looking, tables, leases: own.outbox }),
    stranger: () => stranger(looking, url),
    recordCycle: (worker) => recordCycle(looking, names, worker),
    watchedOutbox: (see) => sqlServerOutboxStore(watched(looking, see), names),
    producer: sqlServerOutbox(tables),
    insertRows: (tx, rows) => insertRows(tx, addSql(names), rows),
    async drop() {
      await looking.end();
      await created.drop();
    },
  });
}

/** What a new database of SQL Server has is OFF, where readers and writers wait for each other. */
function snapshotAsked(): 'ON' | 'OFF' {
  const asked = process.env['RELAYBOX_SQLSERVER_SNAPSHOT'] || 'OFF';
  if (asked === 'ON' || asked === 'OFF') return asked;
  throw new Error(`RELAYBOX_SQLSERVER_SNAPSHOT is ON or OFF, but is ${JSON.stringify(asked)}`);
}

function connected(url: string, max: number, names: Names): Connected {
  const database = connect({ url }, { max });
  const outbox = sqlServerOutboxStore(database, names);
  return {
    inbox: sqlServerInboxStore(database, names),
    outbox,
    operations: sqlServerOperations({ source: database, tables: names.plain, leases: outbox }).operations,
    begin: (limits): Promise<Transaction<TestTx>> => database.begin(limits),
    end: () => database.end(),
  };
}

async function stranger(database: SqlServerDatabase, url: string): ReturnType<EngineDatabase['stranger']> {
  const login = `stranger_${randomUUID().replaceAll('-', '')}`;
  const password = 'Stranger-2026';
  await batch(database, `CREATE LOGIN ${login} WITH PASSWORD = '${password}'`);
  await batch(database, `CREATE USER ${login} FOR LOGIN ${login}`);
  const theirs = new URL(url);
  theirs.username = login;
  theirs.password = password;
  return {
    url: theirs.href,
    async remove() {
      await batch(database, `DROP USER ${login}`);
      await batch(database, `DROP LOGIN ${login}`);
    },
  };
}

/** What only this engine knows how to do to a session. */
function sessions(
  database: SqlServerDatabase,
): Pick<
  EngineParts,
  'waiting' | 'openTransactions' | 'dawdle' | 'refused' | 'endSession' | 'endSessions' | 'loseCommit'
> {
  return {
    async waiting() {
      const { rows } = await database.query(
        `SELECT COUNT(*) AS [waiting] FROM sys.dm_exec_requests
         WHERE database_id = DB_ID() AND blocking_session_id <> 0`,
      );
      return Number(rows[0]?.['waiting']);
    },
    async openTransactions() {
      const { rows } = await database.query(
        `SELECT COUNT(*) AS [open] FROM sys.dm_exec_sessions
         WHERE database_id = DB_ID() AND session_id <> @@SPID AND open_transaction_count > 0`,
      );
      return Number(rows[0]?.['open']);
    },
    // A loop and not WAITFOR, which not every server that speaks the protocol has.
    dawdle: (tx, seconds) =>
      tx.query(
        `DECLARE @until DATETIME2 = DATEADD(millisecond, @p1, SYSUTCDATETIME()), @turns BIGINT = 0;
         WHILE SYSUTCDATETIME() < @until SET @turns = @turns + 1;`,
        [Math.round(seconds * 1_000)],
      ),
    refused: (tx) => tx.query('SELECT dbo.no_such_function()', []),
    endSession: async (tx) => kill(database, await sessionOf(tx)),
    async endSessions() {
      const { rows } = await database.query(
        'SELECT session_id FROM sys.dm_exec_sessions WHERE database_id = DB_ID() AND session_id <> @@SPID',
      );
      // One that is gone by now needs no end.
      for (const row of rows) await kill(database, Number(row['session_id'])).catch(() => undefined);
      return rows.length;
    },
    async loseCommit(tx) {
      const transaction = tx as SqlServerTransaction;
      const session = await sessionOf(tx);
      const commit = transaction.commit.bind(transaction);
      transaction.commit = async () => {
        await kill(database, session);
        await commit();
      };
    },
  };
}

async function sessionOf(tx: SqlExecutor): Promise<number> {
  const { rows } = await tx.query('SELECT @@SPID AS [session]', []);
  return Number(rows[0]?.['session']);
}

/** A session can't end itself, so another does. */
async function kill(database: SqlServerDatabase, session: number): Promise<void> {
  await batch(database, `KILL ${session}`);
}

/** What takes no parameters, and so must stand by itself. */
async function batch(database: SqlServerDatabase, text: string): Promise<void> {
  const client = await database.connect();
  try {
    await client.batch(text);
  } finally {
    await client.release();
  }
}
