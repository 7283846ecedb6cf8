import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { SchemaError } from '../../message/errors.ts';
import { type MigrateOptions, type Migration, type MigrationReport, runMigration } from '../migration/run.ts';
import type { Step } from '../migration/steps.ts';
import { seedIdentity } from './check.ts';
import { sqlState } from './connection-errors.ts';
import { schemaVersion } from './migration-files.ts';
import { appliedSteps, record, versionTableSql } from './migration-record.ts';
import { createdRelation, migrationSteps, statementsOf } from './migration-steps.ts';
import type { Names } from './names.ts';

export type { MigrateOptions, MigrationReport } from '../migration/run.ts';

/** Where a migration takes its connection from: a `pg.Pool`, or what `connect` of this folder answers. */
export interface MigrationSource {
  connect(): Promise<pg.PoolClient>;
}

/** The seed's unique index, where the inbox has it; `$1` is the table. */
const seedIdentitySql = `
  SELECT i.indexrelid::regclass::text AS name FROM pg_index i
  WHERE i.indrelid = to_regclass($1) AND ${seedIdentity}`;

/**
 * Brings the tables to this build's version. Safe to run twice, by two at once, and again after it was killed anywhere:
 * each step is applied as a whole or begun again. Needs a connection of its own, not through a transaction pooler.
 */
export async function migrate(
  source: MigrationSource,
  names: Names,
  options: MigrateOptions = {},
): Promise<MigrationReport> {
  const client = await source.connect();
  // The connection's end is told by the statement under way, or the next one.
  const ignore = (): void => undefined;
  client.on('error', ignore);
  try {
    await client.query('SET statement_timeout = 0; SET lock_timeout = 0');
    return await runMigration(migrationOver(client, names), options);
  } catch (error) {
    const denied = [error, (error as Error).cause].find((one) => sqlState(one) === '42501');
    throw denied === undefined ? error : await rightMissing(client, names, denied);
  } finally {
    // Not back to the pool: the lock and the settings above go with the connection.
    client.release(true);
    client.removeListener('error', ignore);
  }
}

function migrationOver(client: pg.PoolClient, names: Names): Migration {
  return {
    plain: names.plain,
    steps: migrationSteps(names),
    schemaVersion,
    lockHint: 'pg_locks, locktype advisory',
    lock: (waitSeconds) => lock(client, names, waitSeconds),
    prepare: () => createSchema(client, names),

    async seedIndexes() {
      const { rows } = await client.query(seedIdentitySql, [names.inbox]);
      return rows.map((row) => String(row['name']));
    },

    async dropSeedIndex(name) {
      await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`);
    },

    recorded: () => appliedSteps(client, names),
    rows: () => estimatedRows(client, names),
    apply: (step) => apply(client, names, step),
    waited: (error) => sqlState(error) === '55P03',
    complete: (version) => record(client, names, version, 'complete'),
  };
}

/** Waits by asking again: a waiting lock request would hold a snapshot, for which the other's index would wait. */
async function lock(client: pg.PoolClient, names: Names, waitSeconds: number): Promise<boolean> {
  const name = `relaybox migrate ${names.plain.schema}`;
  const until = performance.now() + waitSeconds * 1000;
  for (;;) {
    const { rows } = await client.query('SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS mine', [
      name,
    ]);
    if (rows[0]?.mine === true) return true;
    if (performance.now() > until) return false;
    await sleep(100);
  }
}

async function createSchema(client: pg.PoolClient, names: Names): Promise<void> {
  const { rows } = await client.query(
    'SELECT to_regnamespace($1) IS NOT NULL AS schema, to_regclass($2) IS NOT NULL AS version',
    [names.schema, names.version],
  );
  if (rows[0]?.schema !== true) await client.query(`CREATE SCHEMA IF NOT EXISTS ${names.schema}`);
  if (rows[0]?.version !== true) await client.query(versionTableSql(names));
}

/** What a login needs to migrate; that it owns tables which are there already is said by the server's own message. */
async function rightMissing(client: pg.PoolClient, names: Names, cause: unknown): Promise<SchemaError> {
  const { rows } = await client.query(
    `SELECT quote_ident(current_user) AS login, quote_ident(current_database()) AS database,
       to_regnamespace($1) IS NOT NULL AS schema`,
    [names.schema],
  );
  const [{ login, database, schema } = { login: '<login>', database: '<database>', schema: true }] = rows;
  const grant = schema
    ? `GRANT USAGE, CREATE ON SCHEMA ${names.schema} TO ${login}`
    : `GRANT CREATE ON DATABASE ${database} TO ${login}`;
  return new SchemaError(
    `the login ${login} may not migrate schema "${names.plain.schema}" (${(cause as Error).message}): run ${grant}, or migrate as the tables' owner`,
    { cause },
  );
}

async function apply(client: pg.PoolClient, names: Names, step: Step): Promise<void> {
  if (step.mode !== 'transaction') {
    for (const statement of statementsOf(step)) await execute(client, names, statement);
    return await record(client, names, step.version, step.name);
  }
  try {
    await client.query("BEGIN; SET LOCAL lock_timeout = '2s'");
    for (const statement of statementsOf(step)) await execute(client, names, statement);
    await record(client, names, step.version, step.name);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}

async function execute(client: pg.PoolClient, names: Names, statement: string): Promise<void> {
  const relation = createdRelation(statement, names);
  if (relation !== undefined) {
    const { rows } = await client.query(
      `SELECT r.oid IS NOT NULL AS there, i.indisvalid AS valid
       FROM (SELECT to_regclass($1)::oid AS oid) r LEFT JOIN pg_index i ON i.indexrelid = r.oid`,
      [relation],
    );
    // What an interrupted CREATE INDEX CONCURRENTLY left behind: it costs writers, and serves nobody.
    if (rows[0]?.valid === false) await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${relation}`);
    else if (rows[0]?.there === true) return;
  }
  await client.query(statement);
}

/** A table that was never analysed has no estimate: its size, at half a kilobyte a row, stands in. */
async function estimatedRows(client: pg.PoolClient, names: Names): Promise<number> {
  const { rows } = await client.query(
    `SELECT coalesce(sum(CASE WHEN reltuples < 0 THEN pg_relation_size(oid) / 512 ELSE reltuples END), 0)::float8 AS rows
     FROM pg_class WHERE oid IN (to_regclass($1)::oid, to_regclass($2)::oid)`,
    [names.outbox, names.inbox],
  );
  return Number(rows[0]?.rows ?? 0);
}
