import { createRequire } from 'node:module';
import { Command } from 'commander';
import { addChecks } from './commands/checks.ts';
import { addConsole } from './commands/console.ts';
import { addDecisions } from './commands/decisions.ts';
import { addLanes } from './commands/lanes.ts';
import { addLocal } from './commands/local.ts';
import { addLooks } from './commands/looks.ts';
import { addMigrate } from './commands/migrate.ts';
import { addPurge } from './commands/purge.ts';

/** The whole command line. It throws instead of ending the process; see `main.ts`. */
export function makeProgram(): Command {
  const program = new Command('relaybox')
    .description('Looks after a transactional outbox and inbox.')
    .version(version())
    .exitOverride()
    .showHelpAfterError('(add --help for what it takes, with an example)')
    .addHelpText(
      'after',
      `
Exit codes: 0 well; 1 a finding, or something was refused; 2 wrong usage; 3 database or function out of reach.
Something is wrong and you don't know what:
  relaybox doctor --function orders-maintain
What to do for each finding and alarm: docs/operations.md`,
    );
  addLooks(program);
  addDecisions(program);
  addLanes(program);
  addPurge(program);
  addChecks(program);
  addConsole(program);
  addMigrate(program);
  addLocal(program);
  return program;
}

/** By the package's own name, so that it is found from the sources and from what is shipped. */
function version(): string {
  const { version } = createRequire(import.meta.url)('relaybox/package.json') as { readonly version: string };
  return version;
}
