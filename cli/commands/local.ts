import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { UsageError } from '../errors.ts';

/** The whole system on this machine: `local`. It lives in the repository, with the servers that it starts. */
export function addLocal(program: Command): void {
  program
    .command('local')
    .description(
      'Starts PostgreSQL, queues, a bus and the functions on this machine. Only in the repository.',
    )
    .argument('[arguments...]', 'what `npm run local --` takes')
    .allowUnknownOption()
    .helpOption(false)
    .addHelpText('after', '\nExample:\n  relaybox local --port 3000')
    .action(local);
}

async function local(given: readonly string[]): Promise<void> {
  const main = fileURLToPath(new URL('../../local/main.ts', import.meta.url));
  if (!existsSync(main)) {
    throw new UsageError(
      'local is a part of the repository, not of the package: clone it, then npm ci and npm run local',
    );
  }
  const child = spawn(process.execPath, [main, ...given], { stdio: 'inherit' });
  // Ctrl-C reaches the child from the terminal; this process only waits for its end.
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
  const wait = (): void => undefined;
  process.on('SIGINT', wait);
  process.on('SIGTERM', forward);
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (status) => resolve(status ?? 1));
  });
  process.off('SIGINT', wait);
  process.off('SIGTERM', forward);
  process.exitCode = code;
}
