import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const cdkCli = join(root, 'node_modules/aws-cdk/bin/cdk');

/** Settings of the app, as `cdk.json` would have them. */
export type Context = Readonly<Record<string, string>>;

/** What one run of the CDK's command line said. */
export interface CdkRun {
  readonly code: number;
  readonly output: string;
}

/** The CDK's own command line against the emulator, with this repository's app. */
export class Deployment {
  readonly #env: Readonly<Record<string, string>>;
  readonly #folder = mkdtempSync(join(tmpdir(), 'relaybox-cloud-'));

  constructor(env: Readonly<Record<string, string>>) {
    this.#env = env;
  }

  /** Makes the account ready for deployments. */
  async bootstrap(context: Context): Promise<CdkRun> {
    return await this.#cdk(['bootstrap'], context);
  }

  /** Deploys every stack of the app. */
  async deploy(context: Context): Promise<CdkRun> {
    return await this.#cdk(
      [
        'deploy',
        '--all',
        '--require-approval',
        'never',
        '--progress',
        'events',
        '--outputs-file',
        this.#file('outputs.json'),
      ],
      context,
    );
  }

  /** An output of the stacks by its name, to which the CDK may have added its place. */
  output(name: string): string {
    const stacks = JSON.parse(readFileSync(this.#file('outputs.json'), 'utf8')) as Record<
      string,
      Record<string, string>
    >;
    const all = Object.values(stacks).flatMap((outputs) => Object.entries(outputs));
    const found = all.find(([key]) => key === name) ?? all.find(([key]) => key.includes(name));
    if (found === undefined) throw new Error(`the app has no output ${name}: ${JSON.stringify(stacks)}`);
    return found[1];
  }

  /** Removes what the runs left in the temporary folder. */
  clean(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #file(name: string): string {
    return join(this.#folder, name);
  }

  async #cdk(args: readonly string[], context: Context): Promise<CdkRun> {
    const settings = Object.entries(context).flatMap(([key, value]) => ['--context', `${key}=${value}`]);
    // An output folder of this run's own: the repository's may be in use.
    const all = [cdkCli, ...args, ...settings, '--output', this.#file('cdk.out'), '--no-notices'];
    return await new Promise((resolve) => {
      execFile(
        process.execPath,
        all,
        { cwd: root, env: { ...process.env, ...this.#env }, maxBuffer: 64 * 1024 * 1024, timeout: 300_000 },
        (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}\n${stderr}` }),
      );
    });
  }
}
