import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../local/postgres.ts';
import { until } from './steps.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const requirements = fileURLToPath(new URL('./requirements.txt', import.meta.url));
const folder = join(root, 'node_modules/.cache/relaybox-cloud');
const venv = join(folder, 'venv');
const python = join(venv, 'bin/python');

/** Something that answers AWS's calls. */
export interface Emulator {
  readonly endpoint: string;
  /** What it printed, where it is ours. */
  log(): string;
  stop(): Promise<void>;
}

/** The emulator at the given endpoint, or a MiniStack of our own on a free port of this machine. */
export async function startEmulator(endpoint: string | undefined): Promise<Emulator> {
  if (endpoint !== undefined) {
    await until(`something answers at ${endpoint}`, 60, () => answers(endpoint));
    return { endpoint, log: () => '', stop: async () => {} };
  }
  install();
  const port = await freePort();
  // What the functions and the emulator write goes where it is removed with them.
  const own = mkdtempSync(join(tmpdir(), 'relaybox-emulator-'));
  const logFile = join(own, 'log');
  const log = openSync(logFile, 'w');
  const child = spawn(python, ['-m', 'ministack'], {
    // A process group of its own: its functions are children that must end with it.
    detached: true,
    stdio: ['ignore', log, log],
    env: { ...environment(port), TMPDIR: own },
  });
  closeSync(log);
  // Whatever ends this process ends the emulator.
  const endWithUs = () => signalGroup(child.pid, 'SIGKILL');
  process.once('exit', endWithUs);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  const ours = `http://127.0.0.1:${port}`;
  const emulator = {
    endpoint: ours,
    log: () => readFileSync(logFile, 'utf8'),
    async stop() {
      await stop(child);
      process.off('exit', endWithUs);
      rmSync(own, { recursive: true, force: true });
    },
  };
  try {
    await until('MiniStack answers', 60, async () => {
      if (child.exitCode !== null) throw new Error(`MiniStack ended at its start:\n${emulator.log()}`);
      return await answers(`${ours}/_ministack/health`);
    });
  } catch (error) {
    await emulator.stop();
    throw error;
  }
  return emulator;
}

/** True where a request is answered, whatever the answer. */
async function answers(url: string): Promise<true | undefined> {
  return await fetch(url).then(
    () => true,
    () => undefined,
  );
}

/** MiniStack hands its own environment on to the functions, so it gets no more than it needs. */
function environment(port: number): Record<string, string> {
  return {
    // Whatever Node is first on the path runs the functions: this one.
    PATH: [dirname(process.execPath), process.env['PATH'] ?? ''].join(':'),
    HOME: process.env['HOME'] ?? '/',
    PYTHONUNBUFFERED: '1',
    BIND_HOST: '127.0.0.1',
    GATEWAY_PORT: String(port),
    LAMBDA_EXECUTOR: 'local',
    IOT_MTLS_ENABLED: '0',
    AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
    // The clients that take their endpoint by name: an emulator's queue URLs name a host of their own.
    AWS_ENDPOINT_URL_SQS: `http://127.0.0.1:${port}`,
    AWS_ENDPOINT_URL_EVENTBRIDGE: `http://127.0.0.1:${port}`,
  };
}

/** Installs what `requirements.txt` pins into an environment of its own, once. */
function install(): void {
  const stamp = join(venv, 'requirements.txt');
  const wanted = readFileSync(requirements, 'utf8');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  rmSync(venv, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const run = (file: string, ...args: readonly string[]) =>
    execFileSync(file, args, { stdio: ['ignore', 'inherit', 'inherit'], timeout: 300_000 });
  try {
    run('python3', '-m', 'venv', venv);
    run(python, '-m', 'pip', 'install', '--quiet', '--requirement', requirements);
  } catch (error) {
    rmSync(venv, { recursive: true, force: true });
    throw new Error(
      'MiniStack could not be installed: it needs python3 with venv and pip. Or set RELAYBOX_CLOUD_ENDPOINT to an emulator that runs already (see docs/localstack.md).',
      { cause: error },
    );
  }
  writeFileSync(stamp, wanted);
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once('exit', () => resolve());
  });
  signalGroup(child.pid, 'SIGTERM');
  const late = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), 5000);
  await ended;
  clearTimeout(late);
  // A function's process that outlived it.
  signalGroup(child.pid, 'SIGKILL');
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone.
  }
}
