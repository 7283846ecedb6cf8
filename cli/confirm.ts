import { createInterface } from 'node:readline/promises';
import { UsageError } from './errors.ts';
import { printable } from './output.ts';

/** Asks before something that can't be taken back. Without a terminal nobody can answer: then `--yes` must be given. */
export async function confirm(question: string, options: { readonly yes?: boolean }): Promise<boolean> {
  if (options.yes) return true;
  if (!process.stdin.isTTY) {
    throw new UsageError(
      `${printable(question)} There is no terminal to ask on: add --yes, or try --dry-run`,
    );
  }
  // On stderr, so that what a script reads on stdout is the answer only.
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`${printable(question)} Type "yes" to go on: `);
    return answer.trim().toLowerCase() === 'yes';
  } finally {
    terminal.close();
  }
}
