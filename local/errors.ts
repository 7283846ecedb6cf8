/** The command line, or something on this machine, is not as it must be. The message says what to do; no stack is needed. */
export class UsageError extends Error {}

/** Node's version, as this program needs it. Run through npm, the project brings its own. */
export function requireNode(version = process.versions.node): void {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 18)) return;
  throw new UsageError(
    `Node ${version} is too old. Start it through npm (npm run local, npm run demo): the project brings Node 24.`,
  );
}

/** What to show for an error: the message where it was made for people, the stack where it wasn't. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `\n  because of: ${error.cause.message}` : '';
  const made =
    error instanceof UsageError || error.name === 'InvocationFailed' || error.message.includes('\n');
  return `${made ? error.message : (error.stack ?? error.message)}${cause}`;
}
