/** `npm run local`: the whole system on this machine, until Ctrl-C. */
import { parseArgs } from 'node:util';
import { Cleanup } from './cleanup.ts';
import { explain, requireNode, UsageError } from './errors.ts';
import { Narrator } from './narrator.ts';
import { onStopSignal } from './stop-signals.ts';
import { type LocalSystem, type SystemOptions, startSystem } from './system.ts';

const usage = `npm run local -- [--port <port>] [--verbose]

  --port <port>  port of the HTTP address (default: 3000, or a free one where that is taken)
  --verbose      shows sweeps, and what the functions log`;

const defaultPort = 3000;

interface Options {
  readonly port: number | undefined;
  readonly verbose: boolean;
  readonly help: boolean;
}

function readOptions(args: readonly string[]): Options {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { port: { type: 'string' }, verbose: { type: 'boolean' }, help: { type: 'boolean' } },
    });
    const port = values.port === undefined ? undefined : Number(values.port);
    if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port < 65_536)) {
      throw new UsageError(`--port must be a number from 0 to 65535, but is ${values.port}`);
    }
    return { port, verbose: values.verbose ?? false, help: values.help ?? false };
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

async function start(cleanup: Cleanup, options: Options): Promise<LocalSystem> {
  const narrator = new Narrator((line) => console.log(line), options);
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

async function main(): Promise<void> {
  requireNode();
  const options = readOptions(process.argv.slice(2));
  if (options.help) return console.log(usage);
  const cleanup = new Cleanup();
  const asked = new Promise<void>((resolve) => {
    onStopSignal(() => {
      console.log('\nStopping (again to force) …');
      resolve();
    });
  });
  try {
    console.log('Starting PostgreSQL, SQS, EventBridge and the functions …');
    const running = start(cleanup, options).then((system) => {
      console.log(introduce(system));
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
    process.exit(error instanceof UsageError ? 2 : 1);
  },
);
