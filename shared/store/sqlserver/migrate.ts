import { type MigrateOptions, type Migration, type MigrationReport, runMigration } from '../migration/run.ts';
import type { Step } from '../migration/steps.ts';
import { refuseLevel } from './check.ts';
import { deadlock, sqlNumber } from './connection-errors.ts';
import type { SqlServerClient } from './connections.ts';
import { schemaVersion } from './migration-files.ts';
import { appliedSteps, foundationSql, recordSql } from './migration-record.ts';
import { sessionOptions, stepBatch } from './migration-sql.ts';
import { migrationSteps } from './migration-steps.ts';
import { type Names, quoted } from './names.ts';
import { seedIdentity } from './sql/seed-identity.ts';

export type { MigrateOptions, MigrationReport } from '../migration/run.ts';

/** Where a migration takes its connection from: what `connect` of this folder answers. */
export interface MigrationSource {
  connect(): Promise<SqlServerClient>;
}

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
    return await runMigration(migrationOver(client, names, online), options);
  } finally {
    // The lock and the settings go with the connection.
    await client.release();
  }
}

function migrationOver(client: SqlServerClient, names: Names, online: boolean): Migration {
  return {
    plain: names.plain,
    steps: migrationSteps(names, { online }),
    schemaVersion,
    lockHint: 'sys.dm_tran_locks, resource_type APPLICATION',
    lock: (waitSeconds) => lock(client, names, waitSeconds),
    prepare: () => client.batch(foundationSql(names)),

    async seedIndexes() {
      const { rows } = await client.query(seedIdentity, [names.inbox]);
      return rows.map((row) => String(row['name']));
    },

    dropSeedIndex: (name) => dropIndex(client, names, quoted(name)),
    recorded: () => appliedSteps(client, names),
    rows: () => countedRows(client, names),
    apply: (step) => apply(client, names, step, online),
    waited: (error) => sqlNumber(error) === LOCK_TIMEOUT || deadlock(error),
    complete: (version) => client.batch(recordSql(names, version, 'complete')),
  };
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
async function lock(client: SqlServerClient, names: Names, waitSeconds: number): Promise<boolean> {
  const { rows } = await client.query(
    `
DECLARE @got INT;
EXEC @got = sp_getapplock @Resource = @p1, @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = @p2;
SELECT @got AS [got];`,
    [`relaybox migrate ${names.plain.schema}`, Math.ceil(waitSeconds * 1000)],
  );
  return Number(rows[0]?.['got']) >= 0;
}

/**
 * What locks the whole table waits for it a short time only, since every writer that comes later waits behind it. An
 * index that is built ONLINE asks for its lock once more at its end: it waits, or all of its work would be thrown away.
 */
async function apply(client: SqlServerClient, names: Names, step: Step, online: boolean): Promise<void> {
  const waits = step.mode === 'batches' || (step.mode === 'index' && online);
  const limit = waits ? -1 : 2_000;
  await client.batch(`SET XACT_ABORT ON;\nSET LOCK_TIMEOUT ${limit};\n${stepBatch(step, names)}`);
}

/** A unique constraint has an index of its own name, and goes by another statement. */
async function dropIndex(client: SqlServerClient, names: Names, name: string): Promise<void> {
  await client.batch(`SET LOCK_TIMEOUT -1;
IF OBJECT_ID(N'${`${names.schema}.${name}`.replaceAll("'", "''")}', N'UQ') IS NOT NULL ALTER TABLE ${names.inbox} DROP CONSTRAINT ${name};
ELSE DROP INDEX ${name} ON ${names.inbox};`);
}

async function countedRows(client: SqlServerClient, names: Names): Promise<number> {
  const { rows } = await client.query(
    `
SELECT ISNULL(SUM(p.[rows]), 0) AS [rows] FROM sys.partitions AS p
WHERE p.[index_id] IN (0, 1) AND p.[object_id] IN (OBJECT_ID(@p1), OBJECT_ID(@p2));`,
    [names.outbox, names.inbox],
  );
  return Number(rows[0]?.['rows'] ?? 0);
}
