import { type Command, InvalidArgumentError } from 'commander';
import { withoutSecrets } from '../../shared/delivery/secrets.ts';
import { SchemaError } from '../../shared/message/errors.ts';
import { openBrowser } from '../console/browser.ts';
import { type About, startConsole } from '../console/server.ts';
import { type TargetOptions, whoAmI, whole, withTarget } from '../options.ts';
import { write } from '../output.ts';
import { withCode } from '../refusals.ts';
import { type Target, useFunction, withTargetOf } from '../target.ts';

interface ConsoleOptions extends TargetOptions {
  readonly port: number;
  readonly open: boolean;
}

/** The operators' page: `console`. */
export function addConsole(program: Command): void {
  withTarget(program.command('console'))
    .description(
      'A page in your browser to look, requeue, discard, pause and resume. It is for this machine only, until Ctrl-C.',
    )
    .option('--port <n>', 'port on 127.0.0.1 (default: a free one)', port, 0)
    .option('--no-open', "only print the link, don't open it")
    .addHelpText(
      'after',
      `
The link works once. Whoever opens it may do all that you may.
Examples:
  relaybox console --function orders-maintain
  ssh -t -L 4000:127.0.0.1:4000 bastion relaybox console --port 4000 --url "$RELAYBOX_DATABASE_URL"`,
    )
    .action(run);
}

async function run(options: ConsoleOptions): Promise<void> {
  const json = options.json === true;
  await withTargetOf(options, async (target) => {
    await reach(target);
    const stopped = stopSignal();
    const running = await startConsole(target, aboutOf(options), { port: options.port });
    write({ url: running.url }, json, () => running.url);
    if (!json) process.stderr.write('The link works once. Ctrl-C ends the console.\n');
    if (options.open && !json && process.stdout.isTTY) openBrowser(running.url);
    await stopped;
    await running.end();
  });
}

/** Nobody is to look at a page that can show nothing. Where only tables or rights are missing, its doctor says which. */
async function reach(target: Target): Promise<void> {
  try {
    await target.ask({ command: 'status' });
  } catch (error) {
    if (!(withCode(error) instanceof SchemaError)) throw error;
  }
}

/** Resolves at the first Ctrl-C. What is under way is waited for; a second one ends the process at once. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
}

function aboutOf(options: TargetOptions): About {
  const by = whoAmI();
  if (useFunction(options)) return { where: `function ${options.function}`, kind: 'function', by };
  return { where: addressOf(options.url ?? ''), kind: 'database', by };
}

/** The database's URL as a page may show it. */
function addressOf(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return withoutSecrets(url);
  }
}

function port(text: string): number {
  const value = whole(0)(text);
  if (value > 65_535) throw new InvalidArgumentError('A port from 0 to 65535.');
  return value;
}
