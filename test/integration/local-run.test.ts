import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { Cleanup } from '../../local/cleanup.ts';
import { requireNode } from '../../local/errors.ts';
import { listenOnLoopback } from '../../local/http.ts';

const main = fileURLToPath(new URL('../../local/main.ts', import.meta.url));
const running = new Set<ChildProcess>();

afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

function local(...args: string[]) {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, RELAYBOX_LOCAL_POSTGRES_URL: inject('postgresUrl') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const output = { text: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output.text += String(chunk);
    });
  }
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const says = async (pattern: RegExp): Promise<RegExpExecArray> => {
    const end = Date.now() + 25_000;
    for (;;) {
      const found = pattern.exec(output.text);
      if (found) return found;
      if (Date.now() > end || child.exitCode !== null)
        throw new Error(`it never said ${pattern}: ${output.text}`);
      await sleep(50);
    }
  };
  return { child, ended, says, output };
}

describe('npm run local: the whole system on this machine', () => {
  it('an order placed over HTTP becomes an invoice and an email, and the way can be read', {
    timeout: 60_000,
  }, async () => {
    const { child, ended, says, output } = local('--port', '0');
    const [, databaseUrl = ''] = await says(/database +(postgres:\S+)/);
    const [, curlUrl = ''] = await says(/curl -s (\S+) -d/);
    const answer = await fetch(curlUrl, {
      method: 'POST',
      body: '{"customer":"ada","item":"lamp","amountCents":1200}',
    });
    expect(answer.status).toBe(201);
    const { orderId } = (await answer.json()) as { orderId: string };

    await says(/order\.placed \S+ → invoicing, emails/);
    await says(/invoice\.created \S+ → no rule wants it/);
    await says(/email-on-order-placed +1 message from queue emails → done/);
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    for (const table of ['invoices', 'emails']) {
      const { rows } = await client.query(`SELECT order_id FROM ${table}`);
      expect(rows, table).toEqual([{ order_id: orderId }]);
    }
    await client.end();
    expect(output.text).toMatch(/place-order +POST \/orders → 201/);

    const refused = await fetch(curlUrl, { method: 'POST', body: '{"customer":""}' });
    expect(refused.status).toBe(400);

    child.kill('SIGINT');
    expect(await ended).toBe(0);
    await expect(fetch(curlUrl)).rejects.toThrow();
  });

  it('with --json a program gets its addresses in one line, and nothing else', {
    timeout: 60_000,
  }, async () => {
    const { child, ended, says } = local('--port', '0', '--json');
    let answer = '';
    child.stdout.on('data', (chunk) => {
      answer += String(chunk);
    });
    await says(/"eventBridge"/);
    const { http, database, ...rest } = JSON.parse(answer) as Record<string, string>;
    expect((await fetch(`${http}/orders`, { method: 'POST', body: '{"customer":""}' })).status).toBe(400);
    const client = new pg.Client({ connectionString: database });
    await client.connect();
    await client.end();
    const url = expect.stringMatching(/^http:\/\/127\.0\.0\.1:/);
    expect(rest).toEqual({ sqs: url, queues: { invoicing: url, emails: url }, eventBridge: url });
    child.kill('SIGINT');
    expect(await ended).toBe(0);
    expect(answer.trim().split('\n')).toHaveLength(1);
  });

  it('with --json it answers an error as the other commands do', async () => {
    const { ended, output } = local('--json', '--port', 'http');
    expect(await ended).toBe(2);
    const line = output.text.split('\n').find((each) => each.startsWith('{')) ?? '{}';
    expect(JSON.parse(line)).toEqual({
      error: { code: 'RELAYBOX_USAGE', message: expect.stringContaining('--port must be a number') },
    });
  });

  it('interrupted while it starts, it ends cleanly', { timeout: 30_000 }, async () => {
    const { child, ended, says, output } = local();
    await says(/Starting PostgreSQL/);
    await sleep(300);
    child.kill('SIGINT');
    expect(await ended, output.text).toBe(0);
  });

  it('a port that is taken is named, with what to do', async () => {
    const other = createServer();
    const port = await listenOnLoopback(other, 0);
    const { ended, output } = local('--port', String(port));
    expect(await ended).toBe(2);
    expect(output.text).toContain(
      `Port ${port} is taken. Choose another: npm run local -- --port ${port + 1}`,
    );
    other.close();
  });
});

describe('local start: says what to do', () => {
  it('where Node is too old to run the sources', () => {
    expect(() => requireNode('22.17.1')).toThrow('Start it through npm (npm run local, npm run demo)');
    expect(() => requireNode('20.20.2')).toThrow('Node 20.20.2 is too old');
    expect(() => requireNode('22.18.0')).not.toThrow();
    expect(() => requireNode('24.0.0')).not.toThrow();
  });
});

describe('local cleanup', () => {
  it('ends what was started in the opposite order, whatever fails, and what comes late at once', async () => {
    const ended: string[] = [];
    const cleanup = new Cleanup();
    cleanup.defer(async () => ended.push('first'));
    cleanup.defer(async () => {
      throw new Error('will not stop');
    });
    cleanup.defer(async () => ended.push('last'));
    await expect(cleanup.run()).rejects.toThrow('will not stop');
    expect(ended).toEqual(['last', 'first']);
    cleanup.defer(async () => ended.push('late'));
    expect(ended).toEqual(['last', 'first', 'late']);
  });
});
