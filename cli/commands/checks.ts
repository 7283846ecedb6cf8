import type { Command } from 'commander';
import type { DoctorResponse, HealthResponse } from '../../shared/operations/responses.ts';
import { exit } from '../errors.ts';
import { duration, type TargetOptions, withTarget } from '../options.ts';
import { printable, table, write } from '../output.ts';
import { withTargetOf } from '../target.ts';

interface HealthOptions extends TargetOptions {
  readonly oldest?: number;
  readonly stale?: number;
}

/** Commands that judge: `doctor` and `health`. */
export function addChecks(program: Command): void {
  withTarget(program.command('doctor'))
    .description(
      'Looks for what is wrong, and says what to do. Exit code 1 where it found a problem or a warning.',
    )
    .option('--verbose', 'list the checks that found nothing too')
    .addHelpText('after', '\nExample:\n  relaybox doctor --function orders-maintain')
    .action(async (options: TargetOptions & { readonly verbose?: boolean }) => {
      const answer = await withTargetOf(options, (target) => target.ask({ command: 'doctor' }));
      write(answer, options.json === true, () => doctorText(answer, options.verbose === true));
      if (answer.worst === 'problem' || answer.worst === 'warning') process.exitCode = exit.finding;
    });

  withTarget(program.command('health'))
    .description(
      'Ready or not, from evidence: schema, age of due messages, last cycle of the relay. Exit code 1: not.',
    )
    .option('--oldest <duration>', 'a due message may be so old (default: 5m)', duration)
    .option('--stale <duration>', 'the last cycle may be so old (default: 2m)', duration)
    .addHelpText('after', '\nExample:\n  relaybox health --json --stale 10m')
    .action(async (options: HealthOptions) => {
      const { oldest: oldestDueSeconds, stale: staleSeconds } = options;
      const answer = await withTargetOf(options, (target) =>
        target.ask({ command: 'health', oldestDueSeconds, staleSeconds }),
      );
      write(answer, options.json === true, () => healthText(answer));
      if (!answer.ready) process.exitCode = exit.finding;
    });
}

function doctorText({ findings, worst }: DoctorResponse, verbose: boolean): string {
  const shown = findings.filter(({ severity }) => verbose || severity !== 'ok');
  const said = shown.map(({ check, severity, what, todo }) => {
    const lines = [`${severity.toUpperCase().padEnd(8)} ${check}: ${printable(what)}`];
    if (todo !== '') lines.push(`         ${printable(todo)}`);
    return lines.join('\n');
  });
  const end =
    worst === 'ok' || worst === 'unknown'
      ? `${findings.length} checks, nothing found wrong.`
      : 'What to do about each, at more length: docs/operations.md';
  return [...said, end].join('\n');
}

function healthText({ ready, checks }: HealthResponse): string {
  const rows = checks.map(({ name, ok, detail }) => [name, ok ? 'well' : 'not well', detail]);
  return `${ready ? 'ready' : 'not ready'}\n${table(['CHECK', 'RESULT', 'EVIDENCE'], rows)}`;
}
