#!/usr/bin/env node
/** `relaybox`: the operators' command. Its exit code is for scripts: 0 well, 1 a finding, 2 wrong usage, 3 out of reach. */
import { CommanderError } from 'commander';
import { exitCodeOf, report } from './errors.ts';
import { makeProgram } from './program.ts';

// Whoever reads us may have seen enough (`| head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(process.exitCode ?? 0);
});

try {
  await makeProgram().parseAsync(process.argv);
} catch (error) {
  // Commander has said what is wrong, or printed the help, itself.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    report(error, process.argv.includes('--json'));
    process.exitCode = exitCodeOf(error);
  }
}
