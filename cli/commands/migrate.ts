import type { Command } from 'commander';
import { type EngineName, engineOf, type MigrationReport, migrationText } from '../database.ts';
import { exit, FunctionFailed, UsageError } from '../errors.ts';
import { type TargetOptions, whole, withTarget } from '../options.ts';
import { write } from '../output.ts';
import { tablesOf, useFunction, withDatabase } from '../target.ts';

interface MigrateOptions extends TargetOptions {
  readonly sql?: boolean;
  readonly engine?: string;
  readonly check?: boolean;
  readonly maxRows?: number;
  readonly wait?: number;
  readonly replaceSeedIdentity?: boolean;
}

/** What a migration, or a look at what it would do, answers. */
interface Answer extends MigrationReport {
  /** What else is missing, e.g. a grant; only with `--check`. */
  readonly missing: readonly string[];
}

/** Brings the tables up to date: `migrate`. */
export function addMigrate(program: Command): void {
  withTarget(program.command('migrate'), 'migrate')
    .description(
      'Brings the tables to this version. Safe to run twice, by two at once, and again after it was killed.',
    )
    .option('--sql', 'print the statements instead, for psql or sqlcmd; needs no database')
    .option('--engine <name>', 'with --sql: postgres or sqlserver (default: as --url says, else postgres)')
    .option('--check', 'only say what is missing, rights of the login too; exit code 1 where something is')
    .option('--max-rows <n>', 'refuse tables with more rows, by estimate (default: 50 million)', whole(0))
    .option('--wait <seconds>', 'wait so long for another migration, and for locks (default: 60)', whole(0))
    .option(
      '--replace-seed-identity',
      'only for an inbox table that the .NET package LowCodeHub.InboxOutbox made: replace its unique index, which allows one consumer of a message, by one that allows several; .NET programs that still insert there may fail from then on',
    )
    .addHelpText(
      'after',
      `
--function, and RELAYBOX_FUNCTION, name the migrate function here; in other commands the maintain function.
Examples:
  relaybox migrate --check --url "$RELAYBOX_DATABASE_URL"
  relaybox migrate --check --function orders-migrate
  relaybox migrate --sql --schema messaging | less
  relaybox migrate --sql --engine sqlserver > relaybox.sql`,
    )
    .action(migrate);
}

async function migrate(options: MigrateOptions): Promise<void> {
  if (options.sql) return await printSql(options);
  const answer = useFunction(options) ? await byFunction(options) : await byUrl(options);
  write(answer, options.json === true, () => text(answer, options.check === true));
  if (options.check && answer.pending.length + answer.missing.length > 0) process.exitCode = exit.finding;
}

async function printSql(options: MigrateOptions): Promise<void> {
  const sql = await migrationText(engineFor(options), tablesOf(options));
  process.stdout.write(options.json ? `${JSON.stringify({ sql })}\n` : sql);
}

function engineFor({ engine, url }: MigrateOptions): EngineName {
  if (engine === undefined) return url === undefined ? 'postgres' : engineOf(url);
  if (engine === 'postgres' || engine === 'sqlserver') return engine;
  throw new UsageError(`--engine is postgres or sqlserver, but was ${engine}`);
}

async function byUrl(options: MigrateOptions): Promise<Answer> {
  return await withDatabase(options, async (database) => {
    const report = await database.migrate(requestOf(options));
    if (!options.check || report.pending.length > 0) return { ...report, missing: [] };
    return { ...report, missing: await database.missing() };
  });
}

async function byFunction(options: MigrateOptions): Promise<Answer> {
  if (options.wait !== undefined)
    throw new UsageError('--wait goes with --url: a function waits as long as it may');
  const { withFunction } = await import('../target-function.ts');
  const name = options.function ?? '';
  // The maintain function refuses a command that it doesn't know; without one it would run a cycle.
  const request = { command: 'migrate', ...requestOf(options) };
  const answer = await withFunction(name, (invoke) => invoke(request));
  if (!isAnswer(answer)) {
    throw new FunctionFailed(
      `${name} did not answer "migrate": is it the migrate function, and of this version?`,
    );
  }
  return answer;
}

function isAnswer(answer: unknown): answer is Answer {
  const { applied, pending, missing } = (answer ?? {}) as Partial<Record<keyof Answer, unknown>>;
  return [applied, pending, missing].every(Array.isArray);
}

function requestOf({ check, maxRows, wait, replaceSeedIdentity }: MigrateOptions) {
  return {
    dryRun: check === true,
    ...(maxRows === undefined ? {} : { maxRows }),
    ...(wait === undefined ? {} : { waitSeconds: wait }),
    ...(replaceSeedIdentity === undefined ? {} : { replaceSeedIdentity }),
  };
}

function text({ applied, pending, missing, seedIdentity }: Answer, check: boolean): string {
  const lines = check
    ? [...pending.map((step) => `missing: step ${step}`), ...missing.map((what) => `missing: ${what}`)]
    : applied.map((step) => `applied: step ${step}`);
  if (lines.length === 0) lines.push('The tables are as this version needs them.');
  if (seedIdentity) {
    lines.push(
      'The inbox table was made by the .NET package LowCodeHub.InboxOutbox, and its unique index allows one consumer of a message. That is enough unless you name consumers; then see --replace-seed-identity in relaybox migrate --help.',
    );
  }
  return lines.join('\n');
}
