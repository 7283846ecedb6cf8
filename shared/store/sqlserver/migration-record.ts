import { SchemaError } from '../../message/errors.ts';
import type { Database } from './database.ts';
import { migrationFiles, schemaVersion } from './migration-files.ts';
import type { Step } from './migration-steps.ts';
import { literal, type Names, quoted } from './names.ts';

/** The steps that are recorded as applied. Throws where the schema isn't this build's to migrate. */
export async function appliedSteps(database: Database, names: Names): Promise<Set<string>> {
  const found = await database.query('SELECT CASE WHEN OBJECT_ID(@p1) IS NULL THEN 0 ELSE 1 END AS [there]', [
    names.version,
  ]);
  if (found.rows[0]?.['there'] !== 1) return new Set();
  const { rows } = await database.query(
    `SELECT [Version] AS [version], [Step] AS [step], [OutboxTable] AS [outbox], [InboxTable] AS [inbox]
FROM ${names.version} ORDER BY [Version] DESC`,
  );
  const { outboxTable, inboxTable } = names.plain;
  const other = rows.find((row) => row['outbox'] !== outboxTable || row['inbox'] !== inboxTable);
  if (other !== undefined) {
    throw new SchemaError(
      `schema "${names.plain.schema}" belongs to the tables "${other['outbox']}" and "${other['inbox']}": use these names, or another schema`,
    );
  }
  const newest = Number(rows[0]?.['version'] ?? 0);
  if (newest > schemaVersion) {
    throw new SchemaError(
      `the schema is at version ${newest}, made by a newer Relaybox; this one knows version ${schemaVersion}: deploy the newer one`,
    );
  }
  return new Set(rows.map((row) => `${row['version']} ${row['step']}`));
}

/**
 * Versions of which every step is recorded and the end isn't: a run was killed between the two. `pending` are the steps
 * that are still to be applied.
 */
export function endless(done: ReadonlySet<string>, pending: readonly Step[]): readonly number[] {
  return migrationFiles
    .map((_, index) => index + 1)
    .filter(
      (version) => !done.has(`${version} complete`) && !pending.some((step) => step.version === version),
    );
}

/** The statement that records a step; `complete` says that all of a version's are. The names in it were checked. */
export function recordSql(names: Names, version: number, step: string): string {
  const { outboxTable, inboxTable } = names.plain;
  return `IF NOT EXISTS (SELECT 1 FROM ${names.version} WHERE [Version] = ${version} AND [Step] = ${literal(step)})
  INSERT INTO ${names.version} ([Version], [Step], [OutboxTable], [InboxTable])
  VALUES (${version}, ${literal(step)}, ${literal(outboxTable)}, ${literal(inboxTable)});`;
}

/** Makes the schema and the record. The record needs no version of its own: it is only ever added to. */
export function foundationSql(names: Names): string {
  const create = `CREATE SCHEMA ${quoted(names.plain.schema)}`;
  return `IF SCHEMA_ID(${literal(names.plain.schema)}) IS NULL EXEC (${literal(create)});
IF OBJECT_ID(${literal(names.version)}) IS NULL
  CREATE TABLE ${names.version} (
    [Version]       INT            NOT NULL,
    [Step]          NVARCHAR(200)  NOT NULL,
    [OutboxTable]   NVARCHAR(128)  NOT NULL,
    [InboxTable]    NVARCHAR(128)  NOT NULL,
    [AppliedAtUtc]  DATETIMEOFFSET NOT NULL DEFAULT (TODATETIMEOFFSET(SYSUTCDATETIME(), 0)),
    PRIMARY KEY CLUSTERED ([Version], [Step])
  );`;
}
