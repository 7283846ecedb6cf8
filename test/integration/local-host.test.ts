import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FunctionHost } from '../../local/host.ts';

const entry = fileURLToPath(new URL('./fixtures/sandbox-function.ts', import.meta.url));

/** What the fixture answers when it is asked for nothing. */
interface Answer {
  pid: number;
  invocations: number;
  functionName: string;
  requestId: string;
  remainingMs: number;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('local: functions are real processes', () => {
  const host = new FunctionHost();
  const ask = async (event: unknown) => (await host.invoke('sandbox', event)) as Answer;

  beforeAll(async () => {
    await host.add({ name: 'sandbox', entry, env: {}, timeoutMs: 1500, memoryMb: 64 });
    await host.add({ name: 'pair', entry, env: {}, timeoutMs: 3000, concurrency: 2 });
  });
  afterAll(() => host.stop());

  it('keeps a process warm between invocations, and tells it the time that is left', async () => {
    const first = await ask({});
    const second = await ask({});
    expect(second.pid).toBe(first.pid);
    expect(second.invocations).toBe(first.invocations + 1);
    expect(first.pid).not.toBe(process.pid);
    expect(first.functionName).toBe('sandbox');
    expect(second.requestId).not.toBe(first.requestId);
    expect(first.remainingMs).toBeGreaterThan(1000);
    expect(first.remainingMs).toBeLessThanOrEqual(1500);
  });

  it('reports what a handler throws, and keeps the process', async () => {
    const { pid } = await ask({});
    await expect(host.invoke('sandbox', { does: 'throw' })).rejects.toMatchObject({
      errorType: 'RangeError',
      message: 'sandbox: RangeError: no such order',
    });
    expect((await ask({})).pid).toBe(pid);
  });

  it('kills a process whose time is up, and goes on with a new one', async () => {
    const { pid } = await ask({});
    await expect(host.invoke('sandbox', { does: 'sleep', ms: 60_000 })).rejects.toThrow(
      'Task timed out after 1.50 seconds',
    );
    expect(isRunning(pid)).toBe(false);
    expect((await ask({})).pid).not.toBe(pid);
  });

  it('reports a process that exits, and goes on with a new one', async () => {
    await expect(host.invoke('sandbox', { does: 'exit' })).rejects.toMatchObject({
      errorType: 'Runtime.ExitError',
      message: expect.stringContaining('exit status 3'),
    });
    expect((await ask({})).invocations).toBe(1);
  });

  it('loses only the process that runs out of memory', async () => {
    const roomy = { name: 'hungry', entry, env: {}, timeoutMs: 20_000, memoryMb: 32 };
    await host.add(roomy);
    await expect(host.invoke('hungry', { does: 'eat memory' })).rejects.toMatchObject({
      errorType: 'Runtime.ExitError',
    });
    expect(await host.invoke('hungry', {})).toMatchObject({ invocations: 1 });
  });

  it('runs as many at once as the concurrency says, and makes the others wait', async () => {
    const began = performance.now();
    const nap = { does: 'sleep', ms: 400 };
    const answers = (await Promise.all([1, 2, 3].map(() => host.invoke('pair', nap)))) as Answer[];
    expect(new Set(answers.map((answer) => answer.pid)).size).toBe(2);
    expect(performance.now() - began).toBeGreaterThan(790);
  });

  it('a process killed from outside fails its event and is replaced', async () => {
    const running = host.invoke('pair', { does: 'sleep', ms: 2000 });
    await sleep(100);
    const [busy] = host.pids('pair');
    expect(host.kill('pair', busy ?? 0)).toBe(true);
    await expect(running).rejects.toThrow('signal: SIGKILL');
    expect(host.pids('pair')).not.toContain(busy);
    expect(host.pids('pair')).toHaveLength(2);
  });

  it('gives a function nothing of the host but what a process needs, and no real credentials', async () => {
    process.env['RELAYBOX_TEST_OF_THE_HOST'] = 'leaks';
    const env = (await host.invoke('pair', { does: 'environment' })) as Record<string, string>;
    expect(env['RELAYBOX_TEST_OF_THE_HOST']).toBeUndefined();
    expect(env['NODE_OPTIONS']).toBeUndefined();
    expect(env['AWS_ACCESS_KEY_ID']).toBe('local');
    expect(env['AWS_LAMBDA_FUNCTION_NAME']).toBe('pair');
  });

  it('says why a module could not be loaded', async () => {
    const broken = new FunctionHost();
    const bad = { name: 'bad', entry: '/nowhere/at-all.ts', env: {}, timeoutMs: 1000 };
    await expect(broken.add(bad)).rejects.toThrow(/Cannot find module/);
    await broken.stop();
  });

  it('leaves no process behind at stop, a sleeping one included', async () => {
    const other = new FunctionHost();
    await other.add({ name: 'sandbox', entry, env: {}, timeoutMs: 60_000 });
    const running = other.invoke('sandbox', { does: 'sleep', ms: 60_000 });
    const failed = expect(running).rejects.toThrow('signal: SIGTERM');
    await sleep(50);
    const pids = other.pids('sandbox');
    expect(pids).toHaveLength(1);
    await other.stop();
    await failed;
    expect(pids.filter(isRunning)).toEqual([]);
    await expect(other.invoke('sandbox', {})).rejects.toThrow('stopping');
  });
});
