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
  if (error instanceof UsageError || error instanceof RequestRefused || error instanceof ConfigurationError) {
    return exit.usage;
  }
  if (error instanceof FunctionUnreachable || error instanceof DatabaseUnavailable || isLoginTrouble(error)) {
    return exit.unreachable;
  }
  return exit.finding;
}

/** Says to a person what went wrong; with `json` to a script too. Never shows a password that a URL may hold. */
export function report(error: unknown, json: boolean): void {
  const message = masked(error instanceof Error ? error.message : String(error));
  process.stderr.write(`relaybox: ${printable(message)}\n`);
  if (!json) return;
  const code = error instanceof RelayboxError ? error.code : 'RELAYBOX_UNEXPECTED';
  process.stdout.write(`${JSON.stringify({ error: { code, message } })}\n`);
}

/** Takes the password out of every URL in a text. */
export function masked(text: string): string {
  return text.replaceAll(/([a-z][a-z0-9+.-]*:\/\/[^\s:/@]*):[^\s/@]*@/gi, '$1:***@');
}

/** No login, no such database, no more connections: the server answered, and let nobody in. */
function isLoginTrouble(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === 'string' && /^(28P01|28000|3D000|53300|57P03)$/.test(code);
}
