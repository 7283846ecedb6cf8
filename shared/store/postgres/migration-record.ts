import type pg from 'pg';
import { SchemaError } from '../../message/errors.ts';
import { migrationFiles, schemaVersion } from './migration-files.ts';
import type { Step } from './migration-steps.ts';
import type { Names } from './names.ts';

/** What a step is called in reports and in the record, e.g. `3 outbox ready`. */
export function stepKey(step: Step): string {
  return `${step.version} ${step.name}`;
}

/** The steps that are recorded as applied. Throws where the schema isn't this build's to migrate. */
export async function appliedSteps(client: pg.PoolClient, names: Names): Promise<Set<string>> {
  const { rows: found } = await client.query('SELECT to_regclass($1) IS NOT NULL AS there', [names.version]);
  if (found[0]?.there !== true) return new Set();
  const { rows } = await client.query(
    `SELECT version, step, outbox_table, inbox_table FROM ${names.version} ORDER BY version DESC`,
  );
  const { outboxTable, inboxTable } = names.plain;
  const other = rows.find((row) => row.outbox_table !== outboxTable || row.inbox_table !== inboxTable);
  if (other !== undefined) {
    throw new SchemaError(
      `schema "${names.plain.schema}" belongs to the tables "${other.outbox_table}" and "${other.inbox_table}": use these names, or another schema`,
    );
  }
  if (Number(rows[0]?.version ?? 0) > schemaVersion) {
    throw new SchemaError(
      `the schema is at version ${rows[0]?.version}, made by a newer Relaybox; this one knows version ${schemaVersion}: deploy the newer one`,
    );
  }
  return new Set(rows.map((row) => `${row.version} ${row.step}`));
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

/** Records a step as applied; `complete` says that all of a version's are. */
export async function record(
  client: pg.PoolClient,
  names: Names,
  version: number,
  step: string,
): Promise<void> {
  const values: string[] = [];
  const text = recordSql(names, (value) => `$${values.push(value)}`)(version, step);
  await client.query(text, values);
}

/** The statement that records a step, with its values bound or written out. */
export function recordSql(
  names: Names,
  bind: (value: string) => string,
): (version: number, step: string) => string {
  const { outboxTable, inboxTable } = names.plain;
  return (version, step) =>
    `INSERT INTO ${names.version} (version, step, outbox_table, inbox_table) VALUES (${version}, ${bind(step)}, ${bind(outboxTable)}, ${bind(inboxTable)}) ON CONFLICT DO NOTHING`;
}

/** The record itself. It needs no schema version of its own: it is only ever added to. */
export function versionTableSql(names: Names): string {
  return `CREATE TABLE IF NOT EXISTS ${names.version} (
  version         integer      NOT NULL,
  step            text         NOT NULL,
  outbox_table    text         NOT NULL,
  inbox_table     text         NOT NULL,
  applied_at_utc  timestamptz  NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (version, step)
)`;
}
