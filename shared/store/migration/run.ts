import { setTimeout as sleep } from 'node:timers/promises';
import { SchemaError } from '../../message/errors.ts';
import { endless, type PlainNames } from './record.ts';
import { type Step, stepKey } from './steps.ts';

/** How a migration may run. */
export interface MigrateOptions {
  /**
   * Refuse where outbox and inbox together have more rows than this, by what the database knows without counting: indexes
   * of such tables take longer than a deploy may. @default 50 million
   */
  readonly maxRows?: number;
  /** Only say which steps are pending. @default false */
  readonly dryRun?: boolean;
  /** How long to wait for another migration, and for a lock that a step needs. @default 60 */
  readonly waitSeconds?: number;
  /**
   * Replace the seed's unique index (source, external message id) by ours, which knows consumers and compares exactly.
   * Programs that rely on the seed's may fail from then on: an insert with a conflict target on it (PostgreSQL), or one
   * that expects its error for an id that differs in case (SQL Server). @default false
   */
  readonly replaceSeedIdentity?: boolean;
}

/** What a migration did. */
export interface MigrationReport {
  /** Steps applied by this run, e.g. `3 inbox ready`. */
  readonly applied: readonly string[];
  /** Steps that a dry run found to be missing. */
  readonly pending: readonly string[];
  /** The inbox has the seed's unique index: only the default consumer is accepted there. */
  readonly seedIdentity: boolean;
}

/** What an engine brings to a migration, over one connection of its own. */
export interface Migration {
  readonly plain: PlainNames;
  readonly steps: readonly Step[];
  readonly schemaVersion: number;
  /** Where a person sees whose lock it is. */
  readonly lockHint: string;
  /** Takes the schema's lock for as long as the connection lives; false where another migration has it all that time. */
  lock(waitSeconds: number): Promise<boolean>;
  /** Makes the schema and the record, where they are not there. */
  prepare(): Promise<void>;
  /** Names of the seed's unique index on the inbox, if it has one. */
  seedIndexes(): Promise<readonly string[]>;
  dropSeedIndex(name: string): Promise<void>;
  /** Steps and versions (`3 complete`) that are recorded as applied. */
  recorded(): Promise<ReadonlySet<string>>;
  /** Rows of outbox and inbox, about. */
  rows(): Promise<number>;
  /** Applies a step, and records it with it or behind it. */
  apply(step: Step): Promise<void>;
  /** True where a step could not have its lock within the short time that it may wait; nothing of it was done. */
  waited(error: unknown): boolean;
  /** Records a version as complete. */
  complete(version: number): Promise<void>;
}

const defaultMaxRows = 50_000_000;
const defaultWaitSeconds = 60;

/**
 * Brings the tables to this build's version. Safe to run twice, by two at once, and again after it was killed anywhere:
 * each step is applied as a whole or begun again.
 */
export async function runMigration(migration: Migration, options: MigrateOptions): Promise<MigrationReport> {
  if (options.dryRun) {
    const { steps, seedIdentity } = await pendingSteps(migration, options);
    return { applied: [], pending: steps.map(stepKey), seedIdentity };
  }
  const waitSeconds = options.waitSeconds ?? defaultWaitSeconds;
  if (!(await migration.lock(waitSeconds))) {
    throw new SchemaError(
      `another migration of schema "${migration.plain.schema}" has been running for ${waitSeconds} s: wait for it, or end its session (see ${migration.lockHint})`,
    );
  }
  await migration.prepare();
  const { steps, unended, seedIdentity } = await pendingSteps(migration, options);
  for (const version of unended) await migration.complete(version);
  if (steps.length > 0) refuseHuge(await migration.rows(), options.maxRows ?? defaultMaxRows);
  const applied: string[] = [];
  for (const [index, step] of steps.entries()) {
    await apply(migration, step, waitSeconds);
    applied.push(stepKey(step));
    if (steps[index + 1]?.version !== step.version) await migration.complete(step.version);
  }
  if (seedIdentity && options.replaceSeedIdentity) {
    for (const name of await migration.seedIndexes()) await migration.dropSeedIndex(name);
    return { applied: [...applied, 'drop seed identity'], pending: [], seedIdentity: false };
  }
  return { applied, pending: [], seedIdentity };
}

async function pendingSteps(
  migration: Migration,
  { replaceSeedIdentity }: MigrateOptions,
): Promise<{ steps: readonly Step[]; unended: readonly number[]; seedIdentity: boolean }> {
  const seedIdentity = (await migration.seedIndexes()).length > 0;
  const done = await migration.recorded();
  const steps = migration.steps.filter(
    (step) => !done.has(stepKey(step)) && !(step.unlessSeedIdentity && seedIdentity && !replaceSeedIdentity),
  );
  return { steps, unended: endless(done, steps, migration.schemaVersion), seedIdentity };
}

/** Tries again and again for a moment without a long transaction: everybody who comes after a waiting ALTER TABLE would wait too. */
async function apply(migration: Migration, step: Step, waitSeconds: number): Promise<void> {
  const until = performance.now() + waitSeconds * 1000;
  for (;;) {
    try {
      await migration.apply(step);
      return;
    } catch (cause) {
      if (!migration.waited(cause)) throw stepFailed(step, cause);
      if (performance.now() > until) {
        throw new SchemaError(
          `step "${stepKey(step)}" found no moment without a long transaction on its table in ${waitSeconds} s: run it again when that has ended`,
          { cause },
        );
      }
      await sleep(250);
    }
  }
}

function refuseHuge(rows: number, maxRows: number): void {
  if (rows <= maxRows) return;
  throw new SchemaError(
    `outbox and inbox have about ${Math.round(rows)} rows, and a deploy migrates at most ${maxRows}: run "relaybox migrate --max-rows ${Math.ceil(rows * 1.2)}" by hand, at a quiet time, then deploy again`,
  );
}

function stepFailed(step: Step, cause: unknown): SchemaError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new SchemaError(
    `migration step "${stepKey(step)}" failed: ${reason}. It can be run again as it is once that is mended`,
    { cause },
  );
}
