import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** Package managers as a user may have them. Held at a version, so that a new one's ways don't fail us by surprise. */
const managers = { pnpm: '12.21.0', yarn: '1.22.22' };

/** A folder outside the repository with its tarball, for projects of somebody else's. */
export class Outside {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'relaybox-outside-'));
  readonly #env: Record<string, string | undefined>;

  constructor() {
    const tools = join(this.folder, 'tools/node_modules/.bin');
    const others = (process.env['PATH'] ?? '').split(':').filter((at) => !at.startsWith(root));
    // npm passes its settings on by variables, of which one would make the projects part of this repository.
    const kept = Object.entries(process.env).filter(
      ([name]) => !/^npm_|^NODE_OPTIONS$|^INIT_CWD$/.test(name),
    );
    this.#env = {
      ...Object.fromEntries(kept),
      PATH: [tools, dirname(process.execPath), ...others].join(':'),
      // No credentials, no region: a synth needs none.
      AWS_EC2_METADATA_DISABLED: 'true',
      // A cache of yarn's keeps a tarball by name and version: an earlier build would be installed.
      YARN_CACHE_FOLDER: join(this.folder, 'yarn-cache'),
    };
  }

  /** Packs the repository, and installs the package managers. Answers the tarball's path. */
  async prepare(): Promise<string> {
    await run('npm', ['pack', '--pack-destination', this.folder], { cwd: root, maxBuffer: 1e9 });
    const registry = (await run('npm', ['config', 'get', 'registry'], { cwd: root })).stdout.trim();
    this.#env['npm_config_registry'] = registry;
    const packages = Object.entries(managers).map(([name, version]) => `${name}@${version}`);
    await this.exec(this.folder, 'npm', [
      'install',
      '--prefix',
      'tools',
      '--no-audit',
      '--no-fund',
      ...packages,
    ]);
    const tarball = readdirSync(this.folder).find((file) => file.endsWith('.tgz'));
    if (tarball === undefined) throw new Error('npm pack made no tarball');
    return join(this.folder, tarball);
  }

  /** Runs a program in a folder; an error carries its output. */
  async exec(cwd: string, file: string, args: readonly string[]): Promise<string> {
    try {
      return (await run(file, args, { cwd, env: this.#env, maxBuffer: 1e9 })).stdout;
    } catch (error) {
      const { stdout, stderr } = error as { stdout?: string; stderr?: string };
      throw new Error(`${file} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause: error });
    }
  }

  /** Removes everything. */
  clean(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
