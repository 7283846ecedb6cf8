import type pg from 'pg';
import { recordedSteps } from '../migration/record.ts';
import { schemaVersion } from './migration-files.ts';
import type { Names } from './names.ts';

/** The steps that are recorded as applied. Throws where the schema isn't this build's to migrate. */
export async function appliedSteps(client: pg.PoolClient, names: Names): Promise<ReadonlySet<string>> {
  const { rows: found } = await client.query('SELECT to_regclass($1) IS NOT NULL AS there', [names.version]);
  if (found[0]?.there !== true) return new Set();
  const { rows } = await client.query(
    `SELECT version, step, outbox_table AS outbox, inbox_table AS inbox FROM ${names.version} ORDER BY version DESC`,
  );
  return recordedSteps(rows, names.plain, schemaVersion);
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
