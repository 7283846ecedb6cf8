import { setTimeout as sleep } from 'node:timers/promises';
import { SchemaError } from '../../message/errors.ts';
import { refuseLevel } from './check.ts';
import { deadlock, sqlNumber } from './connection-errors.ts';
import type { SqlServerClient } from './connections.ts';
import { appliedSteps, endless, foundationSql, recordSql } from './migration-record.ts';
import { sessionOptions, stepBatch } from './migration-sql.ts';
import { migrationSteps, type Step, stepKey } from './migration-steps.ts';
import { type Names, quoted } from './names.ts';
import { seedIdentity } from './sql/seed-identity.ts';

/** Where a migration takes its connection from: what `connect` of this folder answers. */
export interface MigrationSource {
  connect(): Promise<SqlServerClient>;
}

/** How a migration may run. */
export interface MigrateOptions {
  /**
   * Refuse where outbox and inbox together have more rows than this, by the database's count: indexes of such tables
   * take longer than a deploy may. @default 50 million
   */
  readonly maxRows?: number;
  /** Only say which steps are pending. @default false */
  readonly dryRun?: boolean;
  /** How long to wait for another migration, and for a lock that a step needs. @default 60 */
  readonly waitSeconds?: number;
  /**
   * Replace the seed's unique index (Source, ExternalMessageId) by ours, which knows consumers and compares exactly.
   * Programs that rely on the seed's error for a duplicate no longer get it for ids that differ in case. @default false
   */
  readonly replaceSeedIdentity?: boolean;
}

/** What a migration did. */
export interface MigrationReport {
  /** Steps applied by this run, e.g. `3 outbox due`. */
  readonly applied: readonly string[];
  /** Steps that a dry run found to be missing. */
  readonly pending: readonly string[];
  /** The inbox has the seed's unique index: only the default consumer is accepted there. */
  readonly seedIdentity: boolean;
}

const defaultMaxRows = 50_000_000;

/** Lock request timeout: somebody has had a lock on the table for longer than a step waits. */
const LOCK_TIMEOUT = 1222;

/**
 * Brings the tables to this build's version. Safe to run twice, by two at once, and again after it was killed anywhere:
 * each step is applied as a whole or begun again. Needs a connection of its own, not through a proxy.
 */
export async function migrate(
  source: MigrationSource,
  names: Names,
  options: MigrateOptions = {},
): Promise<MigrationReport> {
  const client = await source.connect();
  try {
    await client.batch(sessionOptions);
    const { level, database, online } = await server(client);
    refuseLevel(level, database);
    if (options.dryRun) {
      const { steps, seedIdentity } = await pendingSteps(client, names, options, online);
      return { applied: [], pending: steps.map(stepKey), seedIdentity };
    }
    await lock(client, names, options.waitSeconds ?? 60);
    await client.batch(foundationSql(names));
    return await run(client, names, options, online);
  } finally {
    // The lock and the settings go with the connection.
    await client.release();
  }
}

async function run(
  client: SqlServerClient,
  names: Names,
  options: MigrateOptions,
  online: boolean,
): Promise<MigrationReport> {
  const { steps, endless, seedIdentity } = await pendingSteps(client, names, options, online);
  for (const version of endless) await client.batch(recordSql(names, version, 'complete'));
  if (steps.length > 0) await refuseHuge(client, names, options.maxRows ?? defaultMaxRows);
  const applied: string[] = [];
  for (const [index, step] of steps.entries()) {
    await apply(client, names, step, options.waitSeconds ?? 60);
    applied.push(stepKey(step));
    if (steps[index + 1]?.version !== step.version) {
      await client.batch(recordSql(names, step.version, 'complete'));
    }
  }
  if (seedIdentity && options.replaceSeedIdentity) {
    await dropSeedIdentity(client, names);
    return { applied: [...applied, 'drop seed identity'], pending: [], seedIdentity: false };
  }
  return { applied, pending: [], seedIdentity };
}

async function pendingSteps(
  client: SqlServerClient,
  names: Names,
  options: MigrateOptions,
  online: boolean,
): Promise<{ steps: Step[]; endless: readonly number[]; seedIdentity: boolean }> {
  const seed = await client.query(seedIdentity, [names.inbox]);
  const hasSeed = seed.rows.length > 0;
  const done = await appliedSteps(client, names);
  const steps = migrationSteps(names, { online }).filter(
    (step) =>
      !done.has(stepKey(step)) && !(step.unlessSeedIdentity && hasSeed && !options.replaceSeedIdentity),
  );
  return { steps, endless: endless(done, steps), seedIdentity: hasSeed };
}

async function server(
  client: SqlServerClient,
): Promise<{ readonly level: number; readonly database: string; readonly online: boolean }> {
  const { rows } = await client.query(`
SELECT DB_NAME() AS [database], CONVERT(INT, SERVERPROPERTY('EngineEdition')) AS [edition],
  (SELECT d.[compatibility_level] FROM sys.databases AS d WHERE d.[database_id] = DB_ID()) AS [level];`);
  const row = rows[0] ?? {};
  return {
    level: Number(row['level']),
    database: String(row['database']),
    // Enterprise and Developer, Azure SQL Database, Managed Instance.
    online: [3, 5, 8].includes(Number(row['edition'])),
  };
}

/** The lock is the session's, since a migration is many transactions; it ends with the connection. */
async function lock(client: SqlServerClient, names: Names, waitSeconds: number): Promise<void> {
  const { rows } = await client.query(
    `
DECLARE @got INT;
EXEC @got = sp_getapplock @Resource = @p1, @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = @p2;
SELECT @got AS [got];`,
    [`relaybox migrate ${names.plain.schema}`, Math.ceil(waitSeconds * 1000)],
  );
  if (Number(rows[0]?.['got']) >= 0) return;
  throw new SchemaError(
    `another migration of schema "${names.plain.schema}" has been running for ${waitSeconds} s: wait for it, or end its session (see sys.dm_tran_locks, resource_type APPLICATION)`,
  );
}

async function apply(client: SqlServerClient, names: Names, step: Step, waitSeconds: number): Promise<void> {
  const until = performance.now() + waitSeconds * 1000;
  // A short wait, since everybody who comes after a waiting ALTER TABLE waits too.
  const limit = step.mode === 'transaction' ? 2_000 : -1;
  for (;;) {
    try {
      await client.batch(`SET XACT_ABORT ON;\nSET LOCK_TIMEOUT ${limit};\n${stepBatch(step, names)}`);
      return;
    } catch (error) {
      const waiting = sqlNumber(error) === LOCK_TIMEOUT || deadlock(error);
      if (!waiting) throw stepFailed(step, error);
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

async function dropSeedIdentity(client: SqlServerClient, names: Names): Promise<void> {
  const { rows } = await client.query(seedIdentity, [names.inbox]);
  for (const row of rows) {
    const name = quoted(String(row['name']));
    // A unique constraint has an index of its own name, and goes by another statement.
    await client.batch(`SET LOCK_TIMEOUT -1;
IF OBJECT_ID(N'${`${names.schema}.${name}`.replaceAll("'", "''")}', N'UQ') IS NOT NULL ALTER TABLE ${names.inbox} DROP CONSTRAINT ${name};
ELSE DROP INDEX ${name} ON ${names.inbox};`);
  }
}

async function refuseHuge(client: SqlServerClient, names: Names, maxRows: number): Promise<void> {
  const { rows } = await client.query(
    `
SELECT ISNULL(SUM(p.[rows]), 0) AS [rows] FROM sys.partitions AS p
WHERE p.[index_id] IN (0, 1) AND p.[object_id] IN (OBJECT_ID(@p1), OBJECT_ID(@p2));`,
    [names.outbox, names.inbox],
  );
  const count = Number(rows[0]?.['rows'] ?? 0);
  if (count <= maxRows) return;
  throw new SchemaError(
    `outbox and inbox have about ${count} rows, and a deploy migrates at most ${maxRows}: run "relaybox migrate --max-rows ${Math.ceil(count * 1.2)}" by hand, at a quiet time, then deploy again`,
  );
}

function stepFailed(step: Step, cause: unknown): SchemaError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new SchemaError(
    `migration step "${stepKey(step)}" failed: ${reason}. It can be run again as it is once that is mended`,
    { cause },
  );
}
