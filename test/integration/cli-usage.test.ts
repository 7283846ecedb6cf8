import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { cli } from '../support/cli.ts';

describe('wrong usage', () => {
  it.each([
    [['nonsense'], 'unknown command'],
    [['status', '--nonsense'], 'unknown option'],
    [['status'], 'say where'],
    [['discard', 'x'], '--reason'],
    [['requeue'], 'takes ids, or --all'],
    [['requeue', '--all', '--url', 'postgres://a:b@h/d'], 'takes ids, or --all'],
    [['pause', '--reason', 'x', '--url', 'postgres://a:b@h/d'], 'name the lane'],
    [['pause', '--destination', 'x', '--reason', 'y', '--for', 'ever'], 'A duration like'],
    [['purge', 'leases'], 'Allowed choices are'],
    [['status', '--url', 'mysql://a:hunter2@h/d'], 'the database URL begins with'],
  ])('%j ends with 2, and says what is wrong', async (args, message) => {
    const { code, stdout, stderr } = await cli(args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stdout + stderr).not.toContain('hunter2');
  });

  it('takes an empty variable as one that is not set', async () => {
    const names = ['DATABASE_URL', 'FUNCTION', 'SCHEMA', 'OUTBOX_TABLE', 'INBOX_TABLE'];
    const empty = Object.fromEntries(names.map((name) => [`RELAYBOX_${name}`, '']));
    const { code, stderr } = await cli(['status'], empty);
    expect(code).toBe(2);
    expect(stderr).toContain('say where');
    const sql = ['migrate', '--sql'];
    expect(await cli(sql, empty)).toEqual({ ...(await cli(sql)), json: expect.any(Function) });
  });

  it('answers a script in JSON with a code, also where the command line itself is wrong', async () => {
    for (const args of [['nonsense'], ['status', '--nonsense'], ['purge', 'leases'], ['discard', 'x'], []]) {
      const { code, stdout, stderr } = await cli([...args, '--json']);
      expect(code, stderr).toBe(2);
      expect(JSON.parse(stdout), stderr).toMatchObject({ error: { code: 'RELAYBOX_USAGE' } });
      expect(stderr).not.toBe('');
    }
    const { name, version } = JSON.parse(await readFile('package.json', 'utf8')) as Record<string, string>;
    expect(name).toBe('relaybox');
    expect(await cli(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` });
  });
});
