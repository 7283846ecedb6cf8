import { recordedSteps } from '../migration/record.ts';
import type { Database } from './database.ts';
import { schemaVersion } from './migration-files.ts';
import { literal, type Names, quoted } from './names.ts';

/** The steps that are recorded as applied. Throws where the schema isn't this build's to migrate. */
export async function appliedSteps(database: Database, names: Names): Promise<ReadonlySet<string>> {
  const found = await database.query('SELECT CASE WHEN OBJECT_ID(@p1) IS NULL THEN 0 ELSE 1 END AS [there]', [
    names.version,
  ]);
  if (found.rows[0]?.['there'] !== 1) return new Set();
  const { rows } = await database.query(
    `SELECT [Version] AS [version], [Step] AS [step], [OutboxTable] AS [outbox], [InboxTable] AS [inbox]
FROM ${names.version} ORDER BY [Version] DESC`,
  );
  return recordedSteps(rows, names.plain, schemaVersion);
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
