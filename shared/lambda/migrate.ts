import { ConfigurationError, SchemaError } from '../message/errors.ts';
import type { Admin, AdminEngine, MigrateReport, MigrateRequest } from './admin.ts';
import { readSettings, type Settings } from './config.ts';
import { shared } from './connections.ts';
import { type InvocationContext, invocation } from './invocation.ts';

/** Options of a migrate function; everything else comes from its environment. */
export interface MigrateFunctionOptions {
  /** Settings other than the environment's. */
  readonly settings?: Settings;
}

/** What a migrate function answers. */
export interface MigrateAnswer extends MigrateReport {
  /** Looked for in a dry run that finds no step pending: what else is missing of the schema, or of this login's rights. */
  readonly missing: readonly string[];
}

/** Brings the tables to this build's version, and answers what it did. Invoked by a deploy, and safe to invoke again. */
export type MigrateFunction = (event: unknown, context?: InvocationContext) => Promise<MigrateAnswer>;

/** Binds the migrate function to an engine. */
export function migrateFor(engine: AdminEngine): (options?: MigrateFunctionOptions) => MigrateFunction {
  return (options = {}) =>
    (event, context) =>
      invocation(context, async ({ deadline, telemetry }) => {
        // Its connection has no limits, as a migration needs it.
        const admin = shared(engine, options.settings ?? readSettings(), { max: 1 });
        // Half of the time for waiting leaves half for the work; a deploy that failed may be tried again.
        const waitSeconds = Math.max(1, Math.min(60, deadline.remainingMs() / 2000));
        const request = readRequest(event);
        const report = await admin.migrate({ ...request, waitSeconds });
        const look = request.dryRun === true && report.pending.length === 0;
        const answer = { ...report, missing: look ? await missingOf(admin) : [] };
        telemetry.logger.info(request.dryRun ? 'The schema is looked at' : 'The schema is migrated', {
          report: answer,
        });
        return answer;
      });
}

async function missingOf(admin: Pick<Admin, 'check'>): Promise<readonly string[]> {
  try {
    await admin.check();
    return [];
  } catch (error) {
    if (error instanceof SchemaError) return [error.message];
    throw error;
  }
}

/** Reads the request in the event; a deploy's own fields beside it are nothing to us. */
function readRequest(event: unknown): Omit<MigrateRequest, 'waitSeconds'> {
  const given = (event ?? {}) as { readonly [field: string]: unknown };
  const { command, dryRun, maxRows, replaceSeedIdentity } = given;
  const wrong = (field: string, must: string) =>
    new ConfigurationError(`migrate was asked with a ${field} that is not ${must}`);
  // An operator's command for the maintain function must not migrate anything.
  if (command !== undefined && command !== 'migrate') throw wrong('command', 'migrate');
  if (dryRun !== undefined && typeof dryRun !== 'boolean') throw wrong('dryRun', 'true or false');
  if (maxRows !== undefined && typeof maxRows !== 'number') throw wrong('maxRows', 'a number');
  if (replaceSeedIdentity !== undefined && typeof replaceSeedIdentity !== 'boolean') {
    throw wrong('replaceSeedIdentity', 'true or false');
  }
  return {
    ...(dryRun !== undefined && { dryRun }),
    ...(maxRows !== undefined && { maxRows }),
    ...(replaceSeedIdentity !== undefined && { replaceSeedIdentity }),
  };
}
