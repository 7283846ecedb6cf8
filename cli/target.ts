import { readFile } from 'node:fs/promises';
import type { Command as Name } from '../shared/operations/requests.ts';
import type { Responses } from '../shared/operations/responses.ts';
import { type CommandDatabase, openDatabase, type TableNames } from './database.ts';
import { UsageError } from './errors.ts';
import type { TargetOptions } from './options.ts';
import { withCode } from './refusals.ts';

/** A request of one command, as JSON takes it. */
export type Request<Command extends Name> = { readonly command: Command } & Readonly<Record<string, unknown>>;

/** Whoever answers requests: a database, or the deployed function before one. */
export interface Target {
  ask<Command extends Name>(request: Request<Command>): Promise<Responses[Command]>;
}

/** Runs the work against the target that the options name, and closes it after that. */
export async function withTargetOf<T>(
  options: TargetOptions,
  work: (target: Target) => Promise<T>,
): Promise<T> {
  if (useFunction(options)) {
    const { functionTarget } = await import('./target-function.ts');
    return await functionTarget(options.function ?? '', work);
  }
  return await withDatabase(options, async ({ operations }) => {
    const { operate } = await import('../shared/operations/operate.ts');
    return await work({
      async ask<Command extends Name>(request: Request<Command>) {
        // `operate` answers what its request asks for.
        return (await operate(operations, request)) as Responses[Command];
      },
    });
  });
}

/** Runs the work with connections to the database of `--url`. */
export async function withDatabase<T>(
  options: TargetOptions,
  work: (database: CommandDatabase) => Promise<T>,
): Promise<T> {
  const { url } = options;
  if (url === undefined) {
    throw new UsageError(
      'say where: --url <URL of the database> (or RELAYBOX_DATABASE_URL), or --function <name of the maintain function>',
    );
  }
  const ca = options.ca === undefined ? undefined : await certificate(options.ca);
  const database = await openDatabase({
    url,
    tables: tablesOf(options),
    ...(ca === undefined ? {} : { ca }),
  });
  try {
    return await work(database);
  } catch (error) {
    throw withCode(error);
  } finally {
    await database.end();
  }
}

/** Names of the tables, as far as the options give them. */
export function tablesOf({ schema, outboxTable, inboxTable }: TargetOptions): TableNames {
  return {
    ...(schema === undefined ? {} : { schema }),
    ...(outboxTable === undefined ? {} : { outboxTable }),
    ...(inboxTable === undefined ? {} : { inboxTable }),
  };
}

/** Both may be set, one in the environment and the other on the command line: what was typed wins. */
export function useFunction(options: TargetOptions): boolean {
  if (options.function === undefined) return false;
  if (options.url === undefined) return true;
  const typed = (flag: string): boolean =>
    process.argv.some((argument) => argument === flag || argument.startsWith(`${flag}=`));
  if (typed('--url') === typed('--function')) {
    throw new UsageError('both a URL and a function are given: --url, or --function, not both');
  }
  return typed('--function');
}

async function certificate(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new UsageError(`--ca: ${error instanceof Error ? error.message : String(error)}`);
  }
}
