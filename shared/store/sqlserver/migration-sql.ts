import { type Step, stepKey } from '../migration/steps.ts';
import { foundationSql, recordSql } from './migration-record.ts';
import { migrationSteps } from './migration-steps.ts';
import type { Names } from './names.ts';

/**
 * The options that indexes over computed columns, and filtered ones, ask of whoever makes them and whoever writes the
 * table: all are what drivers set, and `sqlcmd` without `-I` doesn't.
 */
export const sessionOptions = `SET ANSI_NULLS, ANSI_PADDING, ANSI_WARNINGS, ARITHABORT, CONCAT_NULL_YIELDS_NULL, QUOTED_IDENTIFIER ON;
SET NUMERIC_ROUNDABORT OFF;`;

/** The migrations as plain SQL, for a person to read or run with `sqlcmd`. */
export function migrationSql(names: Names): string {
  const steps = migrationSteps(names);
  const versions = [...new Set(steps.map((step) => step.version))];
  const batches = versions.flatMap((version) => [
    ...steps.filter((step) => step.version === version).map((step) => printed(step, names)),
    recordSql(names, version, 'complete'),
  ]);
  return [
    '-- Run with sqlcmd or Management Studio, outside a transaction. Safe to run again.',
    '-- On Enterprise, ONLINE = ON builds the indexes beside running writers.',
    sessionOptions,
    'SET XACT_ABORT ON;',
    'GO',
    ...[foundationSql(names), ...batches].flatMap((batch) => [batch, 'GO']),
    '',
  ].join('\n');
}

function printed(step: Step, names: Names): string {
  const note = step.unlessSeedIdentity
    ? '\n-- Leave it out where the inbox has a unique index (Source, ExternalMessageId) that other programs rely on.'
    : '';
  return `-- ${stepKey(step)}${note}\n${stepBatch(step, names)}`;
}

/** A step and its record as the one batch that runs it. */
export function stepBatch(step: Step, names: Names): string {
  const recorded = recordSql(names, step.version, step.name);
  return step.mode === 'transaction'
    ? `BEGIN TRANSACTION;\n${step.text}\n${recorded}\nCOMMIT TRANSACTION;`
    : `${step.text}\n${recorded}`;
}
