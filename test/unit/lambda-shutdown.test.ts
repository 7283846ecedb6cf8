import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';

const module = new URL('../../shared/lambda/shutdown.ts', import.meta.url).href;

/** Runs a script in a process of its own; answers its lines, and how it ended after a SIGTERM at the line `now`. */
async function terminated(script: string): Promise<{ lines: string[]; signal: string | null }> {
  const code = `import { untilShutdown } from ${JSON.stringify(module)}; ${script}`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    if (line === 'now') child.kill('SIGTERM');
  });
  const [, signal] = (await once(child, 'close')) as [number | null, string | null];
  return { lines, signal };
}

describe('SIGTERM', () => {
  it('lets a running invocation give back what it has not begun, and then ends the process', async () => {
    const { lines, signal } = await terminated(`
      setInterval(() => undefined, 1000);
      await untilShutdown(async (signal) => {
        console.log('now');
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        console.log('released');
      });
      console.log('answered');`);
    expect(lines).toEqual(['now', 'released', 'answered']);
    expect(signal).toBe('SIGTERM');
  });

  it('ends an idle process at once, as if nothing of ours were there', async () => {
    const { lines, signal } = await terminated(`
      await untilShutdown(async () => undefined);
      console.log('now');
      setInterval(() => undefined, 1000);`);
    expect(lines).toEqual(['now']);
    expect(signal).toBe('SIGTERM');
  });

  it("leaves the process's own listeners their way", async () => {
    const { lines, signal } = await terminated(`
      process.on('SIGTERM', () => console.log('mine'));
      await untilShutdown(async (signal) => {
        console.log('now');
        const timer = setInterval(() => undefined, 1000);
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        clearInterval(timer);
      });`);
    expect(lines).toEqual(['now', 'mine']);
    expect(signal).toBeNull();
  });
});
