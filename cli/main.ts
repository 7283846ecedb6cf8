#!/usr/bin/env node
/** `relaybox`: the operators' command. Its exit code is for scripts: 0 well, 1 a finding, 2 wrong usage, 3 out of reach. */
import { CommanderError } from 'commander';
import { exitCodeOf, report, reportJson, usageError } from './errors.ts';
import { makeProgram } from './program.ts';

// Whoever reads us may have seen enough (`| head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(process.exitCode ?? 0);
});

try {
  await makeProgram().parseAsync(process.argv);
} catch (error) {
  const json = process.argv.includes('--json');
  if (error instanceof CommanderError && error.exitCode === 0) process.exitCode = 0;
  else {
    // Commander has said to a person what is wrong itself.
    if (!(error instanceof CommanderError)) report(error);
    if (json) reportJson(error instanceof CommanderError ? usageError(error) : error);
    process.exitCode = exitCodeOf(error);
  }
}
