import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, inject, it } from 'vitest';

const main = fileURLToPath(new URL('../../local/demo/main.ts', import.meta.url));

/** The line that `--json` prints. */
interface Line {
  readonly orders: number;
  readonly invoices: number;
  readonly emails: number;
  readonly published: number;
  readonly redelivered: number;
  readonly duplicatesSuppressed: number;
  readonly relayKills: number;
  readonly outageSeconds: number;
  readonly failed: number;
  readonly pending: number;
  readonly lost: number;
  readonly doubled: number;
  readonly refused: number;
  readonly elapsedMs: number;
}

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly folder: string;
}

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A temporary folder of one demo's own, in which it must leave nothing. The database's user must be able to enter it. */
function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'relaybox-demo-test-'));
  chmodSync(folder, 0o755);
  folders.push(folder);
  return folder;
}

function startDemo(args: readonly string[], env: Record<string, string> = {}) {
  const folder = ownFolder();
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, TMPDIR: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => {
    output.stdout += String(chunk);
  });
  child.stderr.on('data', (chunk) => {
    output.stderr += String(chunk);
  });
  const ended = once(child, 'close').then(
    ([code]): Run => ({ code: code as number | null, ...output, folder }),
  );
  return { child, ended, output, folder };
}

async function demo(args: readonly string[], env: Record<string, string> = {}): Promise<Run> {
  return await startDemo(args, env).ended;
}

/** On the test run's own server, which saves starting another. */
const sharedServer = () => ({ RELAYBOX_LOCAL_POSTGRES_URL: inject('postgresUrl') });

function lineOf({ stdout, stderr }: Run): Line {
  expect(stdout, stderr).toMatch(/^\{.*\}\n$/);
  return JSON.parse(stdout) as Line;
}

function childrenOf(parent: ChildProcess): readonly number[] {
  const list = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  const pairs = list.split('\n').map((line) => line.trim().split(/\s+/).map(Number));
  const of = (pid: number): readonly number[] =>
    pairs.filter(([, ppid]) => ppid === pid).flatMap(([child = 0]) => [child, ...of(child)]);
  return of(parent.pid ?? -1);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

// These mostly wait for leases and for the outage's end: side by side they take half the time.
describe.concurrent('the demo: a bad day loses nothing and does nothing twice', () => {
  it('counts every order, from the tables, and prints one line of JSON', { timeout: 120_000 }, async () => {
    const run = await demo(['--orders', '60', '--seed', '7', '--json']);
    const line = lineOf(run);
    expect(run.code, `${run.stdout}${run.stderr}`).toBe(0);
    expect(line).toMatchObject({
      orders: 60,
      // The poison message and the one whose handler kills its process.
      invoices: 58,
      failed: 2,
      emails: 60,
      // An event for each order, and one for each invoice.
      published: 118,
      relayKills: 3,
      outageSeconds: 8,
      pending: 0,
      lost: 0,
      doubled: 0,
      refused: 1,
    });
    // One delivery in ten is repeated, and two relays were killed after the broker had their batch.
    expect(line.duplicatesSuppressed).toBeGreaterThanOrEqual(12);
    expect(line.redelivered).toBeGreaterThanOrEqual(line.duplicatesSuppressed);
    expect(line.elapsedMs).toBeLessThan(60_000);
    expect(run.stderr).toContain('the broker is down for 8 s');
    expect(readdirSync(run.folder)).toEqual([]);
  });

  it('tells why a message failed, an exiting handler by its lost leases', { timeout: 120_000 }, async () => {
    const run = await demo(['--orders', '20', '--outage', '1'], sharedServer());
    expect(run.code, `${run.stdout}${run.stderr}`).toBe(0);
    expect(run.stdout).toMatch(/a cursed vase, after 3 attempts: .*no invoice can be written/);
    expect(run.stdout).toMatch(/a bomb, after \d attempts: .*lease ran out/);
    expect(run.stdout).toContain('✔ Every order has its invoice and its email once');
  });
});

describe.concurrent('the demo: fails where a promise is broken on purpose', () => {
  it('dedup taken out: effects are there twice', { timeout: 120_000 }, async () => {
    const run = await demo(
      ['--orders', '30', '--outage', '1', '--sabotage', 'dedup', '--json'],
      sharedServer(),
    );
    const line = lineOf(run);
    expect(run.code, run.stdout).toBe(1);
    expect(line.doubled).toBeGreaterThan(0);
    expect(line.invoices).toBeGreaterThan(line.orders);
    expect(line.lost).toBe(0);
  });

  it('marked before published: messages are lost', { timeout: 120_000 }, async () => {
    const args = ['--orders', '30', '--outage', '4', '--sabotage', 'mark-first', '--json'];
    const run = await demo(args, sharedServer());
    const line = lineOf(run);
    expect(run.code, run.stdout).toBe(1);
    expect(line.lost).toBeGreaterThan(0);
    expect(line.emails).toBeLessThan(line.orders);
    expect(line.doubled).toBe(0);
  });
});

describe('the demo: ends cleanly', () => {
  it('interrupted in the middle, it leaves no process and no file', { timeout: 60_000 }, async () => {
    const { child, ended, output, folder } = startDemo(['--orders', '50']);
    while (!output.stderr.includes('killing a relay')) {
      if (child.exitCode !== null) throw new Error(`it ended early: ${output.stderr}`);
      await sleep(50);
    }
    const children = childrenOf(child);
    expect(children.length).toBeGreaterThan(5);
    child.kill('SIGINT');
    expect((await ended).code).toBe(130);
    expect(children.filter(isRunning)).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('killed outright, its processes and files go all the same', { timeout: 60_000 }, async () => {
    const { child, output, folder } = startDemo(['--orders', '50']);
    while (!output.stderr.includes('placing orders')) await sleep(50);
    const children = childrenOf(child);
    child.kill('SIGKILL');
    const end = Date.now() + 15_000;
    while (children.some(isRunning) || readdirSync(folder).length > 0) {
      if (Date.now() > end) break;
      await sleep(100);
    }
    expect(children.filter(isRunning)).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each([
    [['--order', '5'], "Unknown option '--order'"],
    [['--orders', 'many'], '--orders must be a whole number from 10 to 5000, but is many'],
    [['--sabotage', 'all'], '--sabotage must be dedup or mark-first'],
    [['200'], 'npm run demo --'],
  ])('%s is answered with what is possible', async (args, message) => {
    const run = await demo(args);
    expect(run.code).toBe(2);
    expect(run.stdout).toBe('');
    expect(run.stderr).toContain(message);
    expect(run.stderr).toContain('[--orders 200]');
  });

  it('a server that cannot be reached is named', async () => {
    const env = { RELAYBOX_LOCAL_POSTGRES_URL: 'postgres://nobody:secret@127.0.0.1:1/postgres' };
    const run = await demo([], env);
    expect(run.code, run.stdout).toBe(1);
    expect(run.stderr).toContain(
      'RELAYBOX_LOCAL_POSTGRES_URL names a server where no database can be created',
    );
    expect(run.stderr).not.toContain('secret');
  });
});
