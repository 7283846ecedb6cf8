import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { SchemaError } from '../../message/errors.ts';
import { seedIdentity } from './check.ts';
import { sqlState } from './connection-errors.ts';
import { appliedSteps, endless, record, stepKey, versionTableSql } from './migration-record.ts';
import { createdRelation, migrationSteps, type Step } from './migration-steps.ts';
import type { Names } from './names.ts';

/** Where a migration takes its connection from: a `pg.Pool`, or what `connect` of this folder answers. */
export interface MigrationSource {
  connect(): Promise<pg.PoolClient>;
}

/** How a migration may run. */
export interface MigrateOptions {
  /**
   * Refuse where outbox and inbox together have more rows than this, by the database's estimate: indexes of such
   * tables take longer than a deploy may. @default 50 million
   */
  readonly maxRows?: number;
  /** Only say which steps are pending. @default false */
  readonly dryRun?: boolean;
  /** How long to wait for another migration, and for a lock that a step needs. @default 60 */
  readonly waitSeconds?: number;
  /**
   * Replace the seed's unique index (source, external_message_id) by ours, which knows consumers. Programs that insert
   * with a conflict target on the seed's fail from then on. @default false
   */
  readonly replaceSeedIdentity?: boolean;
}

/** What a migration did. */
export interface MigrationReport {
  /** Steps applied by this run, e.g. `3 outbox ready`. */
  readonly applied: readonly string[];
  /** Steps that a dry run found to be missing. */
  readonly pending: readonly string[];
  /** The inbox has the seed's unique index: only the default consumer is accepted there. */
  readonly seedIdentity: boolean;
}

const defaultMaxRows = 50_000_000;

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
    if (options.dryRun) {
      const { steps, seedIdentity } = await pendingSteps(client, names, options);
      return { applied: [], pending: steps.map(stepKey), seedIdentity };
    }
    await lock(client, names, options.waitSeconds ?? 60);
    await createSchema(client, names);
    return await run(client, names, options);
  } catch (error) {
    throw sqlState(error) === '42501' ? await rightMissing(client, names, error) : error;
  } finally {
    // Not back to the pool: the lock and the settings above go with the connection.
    client.release(true);
    client.removeListener('error', ignore);
  }
}

async function run(client: pg.PoolClient, names: Names, options: MigrateOptions): Promise<MigrationReport> {
  const { steps, endless, seedIdentity } = await pendingSteps(client, names, options);
  for (const version of endless) await record(client, names, version, 'complete');
  if (steps.length > 0) await refuseHuge(client, names, options.maxRows ?? defaultMaxRows);
  const applied: string[] = [];
  for (const [index, step] of steps.entries()) {
    if (step.mode === 'transaction') await applyInTransaction(client, names, step, options.waitSeconds ?? 60);
    else await applyInPieces(client, names, step);
    applied.push(stepKey(step));
    if (steps[index + 1]?.version !== step.version) await record(client, names, step.version, 'complete');
  }
  if (seedIdentity && options.replaceSeedIdentity) {
    const { rows } = await client.query(seedIdentitySql, [names.inbox]);
    for (const row of rows) await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${String(row['name'])}`);
    return { applied: [...applied, 'drop seed identity'], pending: [], seedIdentity: false };
  }
  return { applied, pending: [], seedIdentity };
}

async function pendingSteps(
  client: pg.PoolClient,
  names: Names,
  options: MigrateOptions,
): Promise<{ steps: Step[]; endless: readonly number[]; seedIdentity: boolean }> {
  const seed = await client.query(seedIdentitySql, [names.inbox]);
  const seedIdentity = seed.rows.length > 0;
  const done = await appliedSteps(client, names);
  const steps = migrationSteps(names).filter(
    (step) =>
      !done.has(stepKey(step)) && !(step.unlessSeedIdentity && seedIdentity && !options.replaceSeedIdentity),
  );
  return { steps, endless: endless(done, steps), seedIdentity };
}

/** Waits by asking again: a waiting lock request would hold a snapshot, for which the other's index would wait. */
async function lock(client: pg.PoolClient, names: Names, waitSeconds: number): Promise<void> {
  const name = `relaybox migrate ${names.plain.schema}`;
  const until = performance.now() + waitSeconds * 1000;
  for (;;) {
    const { rows } = await client.query('SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS mine', [
      name,
    ]);
    if (rows[0]?.mine === true) return;
    if (performance.now() > until) {
      throw new SchemaError(
        `another migration of schema "${names.plain.schema}" has been running for ${waitSeconds} s: wait for it, or end its session (see pg_locks, locktype advisory)`,
      );
    }
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

async function applyInTransaction(
  client: pg.PoolClient,
  names: Names,
  step: Step,
  waitSeconds: number,
): Promise<void> {
  const until = performance.now() + waitSeconds * 1000;
  for (;;) {
    try {
      // A short wait, since everybody who comes after a waiting ALTER TABLE waits too.
      await client.query("BEGIN; SET LOCAL lock_timeout = '2s'");
      for (const statement of step.statements) await apply(client, names, statement);
      await record(client, names, step.version, step.name);
      await client.query('COMMIT');
      return;
    } catch (error) {
      await client.query('ROLLBACK');
      if (sqlState(error) === '42501') throw error;
      if (sqlState(error) !== '55P03') throw stepFailed(step, error);
      if (performance.now() > until) {
        throw new SchemaError(
          `step "${stepKey(step)}" found no moment without a long transaction on its table in ${waitSeconds} s: run it again when that has ended`,
          { cause: error },
        );
      }
      await sleep(250);
    }
  }
}

async function applyInPieces(client: pg.PoolClient, names: Names, step: Step): Promise<void> {
  try {
    for (const statement of step.statements) await apply(client, names, statement);
  } catch (error) {
    throw sqlState(error) === '42501' ? error : stepFailed(step, error);
  }
  await record(client, names, step.version, step.name);
}

async function apply(client: pg.PoolClient, names: Names, statement: string): Promise<void> {
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

async function refuseHuge(client: pg.PoolClient, names: Names, maxRows: number): Promise<void> {
  // A table that was never analysed has no estimate: its size, at half a kilobyte a row, stands in.
  const { rows } = await client.query(
    `SELECT coalesce(sum(CASE WHEN reltuples < 0 THEN pg_relation_size(oid) / 512 ELSE reltuples END), 0)::float8 AS rows
     FROM pg_class WHERE oid IN (to_regclass($1)::oid, to_regclass($2)::oid)`,
    [names.outbox, names.inbox],
  );
  const estimate = Number(rows[0]?.rows ?? 0);
  if (estimate <= maxRows) return;
  throw new SchemaError(
    `outbox and inbox have about ${Math.round(estimate)} rows, and a deploy migrates at most ${maxRows}: run "relaybox migrate --max-rows ${Math.ceil(estimate * 1.2)}" by hand, at a quiet time, then deploy again`,
  );
}

function stepFailed(step: Step, cause: unknown): SchemaError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new SchemaError(
    `migration step "${stepKey(step)}" failed: ${reason}. It can be run again as it is once that is mended`,
    { cause },
  );
}
