/** `npm run local`: the whole system on this machine, until Ctrl-C. */
import { parseArgs } from 'node:util';
import { withoutSecrets } from '../shared/delivery/secrets.ts';
import { Cleanup } from './cleanup.ts';
import { explain, requireNode, UsageError } from './errors.ts';
import { Narrator } from './narrator.ts';
import { onStopSignal } from './stop-signals.ts';
import { type LocalSystem, type SystemOptions, startSystem } from './system.ts';

const usage = `npm run local -- [--port <port>] [--verbose] [--json]

  --port <port>  port of the HTTP address (default: 3000, or a free one where that is taken)
  --verbose      shows sweeps, and what the functions log
  --json         one line of JSON on standard output once it runs: its addresses; all else goes to standard error`;

const defaultPort = 3000;

interface Options {
  readonly port: number | undefined;
  readonly verbose: boolean;
  readonly json: boolean;
  readonly help: boolean;
}

function readOptions(args: readonly string[]): Options {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        port: { type: 'string' },
        verbose: { type: 'boolean' },
        json: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    });
    const port = values.port === undefined ? undefined : Number(values.port);
    if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port < 65_536)) {
      throw new UsageError(`--port must be a number from 0 to 65535, but is ${values.port}`);
    }
    const { verbose = false, json = false, help = false } = values;
    return { port, verbose, json, help };
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

async function start(cleanup: Cleanup, options: Options): Promise<LocalSystem> {
  const narrator = new Narrator(teller(options), options);
  const port = options.port ?? ((await isFree(defaultPort)) ? defaultPort : 0);
  if (port !== 0 && !(await isFree(port))) {
    throw new UsageError(`Port ${port} is taken. Choose another: npm run local -- --port ${port + 1}`);
  }
  const system: SystemOptions = {
    httpPort: port,
    onLog: (name, line) => narrator.log(name, line),
    onInvocation: (report) => narrator.invocation(report),
    onEvent: (event) => narrator.event(event),
  };
  return await startSystem(cleanup, system);
}

async function isFree(port: number): Promise<boolean> {
  const { createServer } = await import('node:net');
  return await new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Where what is for people goes: with `--json` not to standard output, which a program reads. */
function teller({ json }: Options): (line: string) => void {
  return (line) => (json ? console.error(line) : console.log(line));
}

/** The addresses, for a program. */
function addresses({ databaseUrl, http, gates, queues }: LocalSystem): string {
  const { invoicing, emails } = queues;
  return JSON.stringify({
    http: http.url,
    database: databaseUrl,
    sqs: gates.sqs.url,
    queues: { invoicing: invoicing.url, emails: emails.url },
    eventBridge: gates.eventBridge.url,
  });
}

function introduce({ databaseUrl, http, gates, queues }: LocalSystem): string {
  return `
Relaybox runs on this machine.

  database     ${databaseUrl}
  SQS          ${gates.sqs.url}    queues ${[queues.invoicing, queues.emails].map((queue) => queue.name).join(', ')}
  EventBridge  ${gates.eventBridge.url}    bus orders
  HTTP         ${http.url}

Place an order:

  curl -s ${http.url}/orders -d '{"customer":"ada","item":"lamp","amountCents":1200}'

and look at what it caused:

  psql ${databaseUrl} -c 'select * from invoices'
  npm run relaybox -- status --url ${databaseUrl}

Ctrl-C stops everything and leaves nothing behind.
`;
}

/** The error as the operators' command answers it. */
function errorAnswer(error: unknown): string {
  const code = error instanceof UsageError ? 'RELAYBOX_USAGE' : 'RELAYBOX_UNEXPECTED';
  const message = withoutSecrets(error instanceof Error ? error.message : String(error));
  return JSON.stringify({ error: { code, message } });
}

async function main(): Promise<void> {
  requireNode();
  const options = readOptions(process.argv.slice(2));
  if (options.help) return console.log(usage);
  const say = teller(options);
  const cleanup = new Cleanup();
  const asked = new Promise<void>((resolve) => {
    onStopSignal(() => {
      say('\nStopping (again to force) …');
      resolve();
    });
  });
  try {
    say('Starting PostgreSQL, SQS, EventBridge and the functions …');
    const running = start(cleanup, options).then((system) => {
      console.log(options.json ? addresses(system) : introduce(system));
      return asked;
    });
    // An interrupted start fails later, when what it waits for is taken away: nobody asks for that error any more.
    running.catch(() => undefined);
    await Promise.race([running, asked]);
  } finally {
    await cleanup.run();
  }
}

main().then(
  // Nothing is left to wait for; a socket that a library keeps must not hold the terminal.
  () => process.exit(0),
  (error: unknown) => {
    console.error(explain(error));
    if (process.argv.includes('--json')) console.log(errorAnswer(error));
    process.exit(error instanceof UsageError ? 2 : 1);
  },
);
