import { CommanderError } from 'commander';
import { withoutSecrets } from '../shared/delivery/secrets.ts';
import { ConfigurationError, DatabaseUnavailable, RelayboxError } from '../shared/message/errors.ts';
import { RequestRefused } from '../shared/operations/errors.ts';
import { printable } from './output.ts';

/** Exit codes of every command. */
export const exit = { well: 0, finding: 1, usage: 2, unreachable: 3 } as const;

/** The command line is not as it must be. */
export class UsageError extends RelayboxError {
  readonly code = 'RELAYBOX_USAGE';
}

/** The deployed function, or what it needs, could not be reached. */
export class FunctionUnreachable extends RelayboxError {
  readonly code = 'RELAYBOX_FUNCTION_UNREACHABLE';
}

/** The deployed function was reached and answered with an error. */
export class FunctionFailed extends RelayboxError {
  readonly code = 'RELAYBOX_FUNCTION_FAILED';
}

/** What a script is told about an error. */
export function exitCodeOf(error: unknown): number {
  if (usage.some((kind) => error instanceof kind)) return exit.usage;
  if (error instanceof FunctionUnreachable || error instanceof DatabaseUnavailable) return exit.unreachable;
  return exit.finding;
}

const usage = [UsageError, RequestRefused, ConfigurationError, CommanderError];

/** Says to a person what went wrong. Never shows a password that a URL may hold. */
export function report(error: unknown): void {
  process.stderr.write(`relaybox: ${printable(messageOf(error))}\n`);
}

/** Says the same to a script. */
export function reportJson(error: unknown): void {
  process.stdout.write(`${JSON.stringify(errorAnswer(error))}\n`);
}

/** An error as JSON has it, without secrets. */
export function errorAnswer(error: unknown): {
  readonly error: { readonly code: string; readonly message: string };
} {
  const code = error instanceof RelayboxError ? error.code : 'RELAYBOX_UNEXPECTED';
  return { error: { code, message: messageOf(error) } };
}

/** What the parser of the command line found wrong, as an error of ours. */
export function usageError({ code, message }: CommanderError): UsageError {
  return new UsageError(
    code === 'commander.help' ? 'name a command: see --help' : message.replace(/^error: /, ''),
  );
}

function messageOf(error: unknown): string {
  return withoutSecrets(error instanceof Error ? error.message : String(error));
}
