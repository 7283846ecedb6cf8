import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { UsageError } from './errors.ts';

/** Whom the server belongs to where this process is root's: PostgreSQL refuses to run as root. */
const serverUser = 'postgres';

/** Where that user is yet to be made, it owns nothing and is in no group that matters: as `nobody`. */
const nobody = { uid: 65_534, gid: 65_534 };

/**
 * Sees to it that the server's own user can enter the folders, before something is started there: what can't be
 * entered ends as an error of a child process, which names no folder. Does nothing where this process isn't root's.
 * @throws {UsageError} naming the first folder on the way that keeps the user out, and the cure
 */
export function requireEnterable(folders: readonly string[]): void {
  if (process.getuid?.() !== 0) return;
  const user = idsOf(serverUser) ?? nobody;
  for (const folder of folders) {
    const closed = pathTo(folder).find((each) => existsSync(each) && !mayEnter(each, user));
    if (closed === undefined) continue;
    const mode = (statSync(closed).mode & 0o777).toString(8);
    const where = closed === folder ? '' : ` on the way to ${folder}`;
    throw new UsageError(
      [
        `started by root, the server runs as the user "${serverUser}", who may not enter ${closed} (mode ${mode})${where}`,
        `  - let others pass through it: chmod o+x ${closed}`,
        '  - or work in a folder that everybody may enter, or as another user than root',
      ].join('\n'),
    );
  }
}

/** The folder and all above it, from the top. */
function pathTo(folder: string): readonly string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [...pathTo(above), folder];
}

/** Asked of the system as that user, so that access lists count too. */
function mayEnter(folder: string, user: typeof nobody): boolean {
  return spawnSync('/bin/sh', ['-c', 'test -x "$0"', folder], { cwd: '/', ...user }).status === 0;
}

function idsOf(name: string): typeof nobody | undefined {
  const [uid, gid] = ['-u', '-g'].map((flag) => spawnSync('id', [flag, name], { encoding: 'utf8' }));
  if (uid?.status !== 0 || gid?.status !== 0) return undefined;
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}
