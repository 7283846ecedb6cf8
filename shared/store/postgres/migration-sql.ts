import { type Step, stepKey } from '../migration/steps.ts';
import { recordSql, versionTableSql } from './migration-record.ts';
import { migrationSteps } from './migration-steps.ts';
import type { Names } from './names.ts';

/** The migrations as plain SQL, for a person to read or run with `psql`. */
export function migrationSql(names: Names): string {
  const steps = migrationSteps(names);
  const versions = [...new Set(steps.map((step) => step.version))];
  const body = versions.flatMap((version) => [
    ...steps.filter((step) => step.version === version).map((step) => sqlOf(step, names)),
    `${recordSql(names, literal)(version, 'complete')};`,
  ]);
  return [
    '-- Run with psql, outside a transaction: indexes are built concurrently, and backfills commit in batches.',
    '-- What comes after a step records it as applied. So another program must stop at the first error too, in its own way: the next line is for psql alone.',
    String.raw`\set ON_ERROR_STOP on`,
    `CREATE SCHEMA IF NOT EXISTS ${names.schema};`,
    `${versionTableSql(names)};`,
    ...body,
    '',
  ].join('\n\n');
}

function sqlOf(step: Step, names: Names): string {
  const note = step.unlessSeedIdentity
    ? '\n-- Leave it out where the inbox has a unique index (source, external_message_id) that other programs rely on.'
    : '';
  const recorded = recordSql(names, literal)(step.version, step.name);
  const sql =
    step.mode === 'transaction'
      ? `BEGIN;\n${step.text}\n${recorded};\nCOMMIT;`
      : `${step.text}\n${recorded};`;
  return `-- ${stepKey(step)}${note}\n${sql}`;
}

function literal(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}
