import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Transaction } from '../../../shared/store/inbox-store.ts';
import { connect } from '../../../shared/store/postgres/connections.ts';
import { postgresInboxStore } from '../../../shared/store/postgres/inbox-store.ts';
import { bucketOf, type Names } from '../../../shared/store/postgres/names.ts';
import { postgresOperations, recordCycle } from '../../../shared/store/postgres/operations.ts';
import { postgresOutboxStore } from '../../../shared/store/postgres/outbox-store.ts';
import { insertRows, postgresOutbox } from '../../../shared/store/postgres/producer.ts';
import { addSql } from '../../../shared/store/postgres/sql/add.ts';
import { createDatabase } from '../database.ts';
import { createMigratedDatabase } from '../migrated.ts';
import { assemble, type Connected, type EngineParts, watched } from './assemble.ts';
import type { Dialect } from './dialect.ts';
import type { Table } from './tables.ts';
import type { DatabaseOptions, EngineDatabase, TestEngine, TestTx } from './test-engine.ts';

/** PostgreSQL: the server that the test run started. */
export const postgres: TestEngine = {
  name: 'postgres',
  caughtErrorDoomsTransaction: true,
  endsIdleTransactions: true,
  repairsKeysByName: true,
  countsCodeUnits: false,
  many: 20_000,
  shortMs: 4_000,
  createDatabase: create,
  createEmpty: () => createDatabase(),
};

async function create({ timezone, tables = {} }: DatabaseOptions = {}): Promise<EngineDatabase> {
  const created = await createMigratedDatabase(timezone === undefined ? {} : { timezone }, tables);
  const { pool, url, tables: names } = created;
  await pool.query(`CREATE TABLE effects (place bigint GENERATED ALWAYS AS IDENTITY, id text NOT NULL)`);
  const own = connected(url, 16, names);
  return assemble({
    ...sessions(pool),
    name: 'postgres',
    url,
    tables: tableNames(names),
    dialect: dialectOf(names),
    run: async (text, values) => (await pool.query(text, values)).rows,
    own,
    connect: (to, max) => connected(to, max, names),
    ...postgresOperations({ source: pool, tables, leases: own.outbox }),
    stranger: () => stranger(pool, url),
    recordCycle: (worker) => recordCycle(pool, names, worker),
    watchedOutbox: (see) => postgresOutboxStore(watched(pool, see), names),
    producer: postgresOutbox(tables),
    insertRows: (tx, rows) => insertRows(tx, addSql(names), rows),
    drop: () => created.drop(),
  });
}

function connected(url: string, max: number, names: Names): Connected {
  const database = connect({ url }, { max });
  const outbox = postgresOutboxStore(database, names);
  return {
    inbox: postgresInboxStore(database, names),
    outbox,
    operations: postgresOperations({ source: database, tables: names.plain, leases: outbox }).operations,
    begin: (limits): Promise<Transaction<TestTx>> => database.begin(limits),
    end: () => database.end(),
  };
}

async function stranger(pool: pg.Pool, url: string): ReturnType<EngineDatabase['stranger']> {
  const role = `stranger_${randomUUID().replaceAll('-', '')}`;
  await pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'stranger'`);
  const theirs = new URL(url);
  theirs.username = role;
  theirs.password = 'stranger';
  return {
    url: theirs.href,
    remove: async () => {
      await pool.query(`DROP ROLE ${role}`);
    },
  };
}

/** What only this engine knows how to do to a session. */
function sessions(
  pool: pg.Pool,
): Pick<
  EngineParts,
  'waiting' | 'openTransactions' | 'dawdle' | 'refused' | 'endSession' | 'endSessions' | 'loseCommit'
> {
  return {
    async waiting() {
      const { rows } = await pool.query(
        `SELECT count(*)::int AS waiting FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return rows[0]?.waiting ?? 0;
    },
    async openTransactions() {
      const { rows } = await pool.query(
        `SELECT count(*)::int AS open FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'relaybox' AND state LIKE 'idle in transaction%'`,
      );
      return rows[0]?.open ?? 0;
    },
    dawdle: (tx, seconds) => tx.query('SELECT pg_sleep($1)', [seconds]),
    refused: (tx) => tx.query('SELECT no_such_function()', []),
    async endSession(tx) {
      const { rows } = await tx.query('SELECT pg_backend_pid() AS pid', []);
      await pool.query('SELECT pg_terminate_backend($1, 5000)', [rows[0]?.['pid']]);
    },
    async endSessions() {
      const { rows } = await pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'relaybox'`,
      );
      return rows.length;
    },
    async loseCommit(tx) {
      await tx.query('CREATE TEMP TABLE t (n int) ON COMMIT DROP', []);
      await tx.query(
        `CREATE FUNCTION pg_temp.die() RETURNS trigger LANGUAGE plpgsql
         AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'`,
        [],
      );
      await tx.query(
        `CREATE CONSTRAINT TRIGGER die AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION pg_temp.die()`,
        [],
      );
      await tx.query('INSERT INTO t VALUES (1)', []);
    },
  };
}

function tableNames(names: Names): Record<Table, string> {
  const { outbox, inbox, leases, lanes, keys, inboxLanes, receipts, workers } = names;
  return {
    ...{ outbox, inbox, leases, lanes, keys, inboxLanes, receipts, workers },
    archive: names.outboxArchive,
    effects: 'effects',
  };
}

function dialectOf(names: Names): Dialect {
  const tables = tableNames(names);
  return {
    table: (table) => tables[table],
    target: (column) => column,
    // The bucket isn't stored: it follows from the key, or the id.
    column: (table, column) => (table === 'outbox' && column === 'bucket' ? bucketOf() : column),
    selected(expression, kind) {
      if (kind === 'guid') return `${expression}::text`;
      if (kind === 'json') return `to_jsonb(${expression})`;
      if (kind !== 'instant') return expression;
      return `CASE WHEN isfinite(${expression}) THEN to_char(${expression} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') END`;
    },
    as: (column) => pg.escapeIdentifier(column),
    placeholder: (place) => `$${place}`,
    fromNow: (seconds, bind) => `clock_timestamp() + make_interval(secs => ${bind(seconds)})`,
    secondsUntil: (expression) => `extract(epoch FROM ${expression} - clock_timestamp())::float8`,
    // A list is an array here; everything else that is JSON is text of it.
    bound: (value, kind) =>
      kind === 'json' && typeof value === 'object' && !Array.isArray(value) ? JSON.stringify(value) : value,
    derived: () => ({}),
    counted: (change) => `${change} RETURNING 1`,
    emptied: (emptied) => `TRUNCATE ${emptied.join(', ')}`,
  };
}
