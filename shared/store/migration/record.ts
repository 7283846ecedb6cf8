import { SchemaError } from '../../message/errors.ts';
import type { DriverRow } from '../values.ts';
import type { Step } from './steps.ts';

/** The names of schema and tables as configured. */
export interface PlainNames {
  readonly schema: string;
  readonly outboxTable: string;
  readonly inboxTable: string;
}

/**
 * The steps that the record (`version`, `step`, `outbox`, `inbox`, the newest first) has as applied. Throws where the
 * schema isn't this build's to migrate.
 */
export function recordedSteps(
  rows: readonly DriverRow[],
  { schema, outboxTable, inboxTable }: PlainNames,
  known: number,
): ReadonlySet<string> {
  const other = rows.find((row) => row['outbox'] !== outboxTable || row['inbox'] !== inboxTable);
  if (other !== undefined) {
    throw new SchemaError(
      `schema "${schema}" belongs to the tables "${other['outbox']}" and "${other['inbox']}": use these names, or another schema`,
    );
  }
  const newest = Number(rows[0]?.['version'] ?? 0);
  if (newest > known) {
    throw new SchemaError(
      `the schema is at version ${newest}, made by a newer Relaybox; this one knows version ${known}: deploy the newer one`,
    );
  }
  return new Set(rows.map((row) => `${row['version']} ${row['step']}`));
}

/**
 * Versions of which every step is recorded and the end isn't: a run was killed between the two. `pending` are the steps
 * that are still to be applied.
 */
export function endless(
  done: ReadonlySet<string>,
  pending: readonly Step[],
  known: number,
): readonly number[] {
  return Array.from({ length: known }, (_, index) => index + 1).filter(
    (version) => !done.has(`${version} complete`) && !pending.some((step) => step.version === version),
  );
}
