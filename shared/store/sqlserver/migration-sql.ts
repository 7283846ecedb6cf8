import { type Step, stepKey } from '../migration/steps.ts';
import { foundationSql, recordSql } from './migration-record.ts';
import { migrationSteps } from './migration-steps.ts';
import { literal, type Names } from './names.ts';

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
    completed(version, steps, names),
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

/** `sqlcmd` without `-b`, and Management Studio, go on after a batch that failed: a version isn't complete where a step is missing. */
function completed(version: number, steps: readonly Step[], names: Names): string {
  const needed = steps.filter((step) => step.version === version && !step.unlessSeedIdentity);
  const rows = needed.map(({ name }) => `(${literal(name)})`).join(', ');
  return `IF NOT EXISTS (SELECT 1 FROM (VALUES ${rows}) AS s ([Step]) WHERE NOT EXISTS (
  SELECT 1 FROM ${names.version} AS v WHERE v.[Version] = ${version} AND v.[Step] = s.[Step]))
${recordSql(names, version, 'complete')}`;
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
