import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Outside } from './outside.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const sources = join(root, 'test/package/cdk');
const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** How each package manager installs a project and runs a program of it, and what it needs to be told. */
const managers = {
  npm: {
    install: ['npm', 'install', '--no-audit', '--no-fund'],
    run: ['npx', '--no-install'],
    settings: {},
    files: {},
  },
  pnpm: {
    install: ['pnpm', 'install'],
    run: ['pnpm', 'exec'],
    settings: {},
    // It asks about each package that runs a script at its installation, as esbuild does.
    files: { 'pnpm-workspace.yaml': 'allowBuilds:\n  esbuild: true\n' },
  },
  yarn: {
    install: ['yarn', 'install', '--non-interactive'],
    run: ['yarn', '--silent', 'run'],
    // It looks up what aws-cdk-lib bundles, and this one's version is in no registry. The bundled one is used all the same.
    settings: { resolutions: { '@aws/cloudformation-validate': '1.9.0-beta' } },
    files: {},
  },
};

describe('relaybox/cdk in projects outside the repository', () => {
  const outside = new Outside();
  let tarball: string;

  beforeAll(async () => {
    tarball = await outside.prepare();
  });

  afterAll(() => {
    outside.clean();
  });

  async function exec(project: string, [file, ...first]: readonly string[], ...args: readonly string[]) {
    return await outside.exec(project, file ?? '', [...first, ...args]);
  }

  function addFunctions(project: string): void {
    mkdirSync(join(project, 'functions'));
    // .mts, since a project of `cdk init` is CommonJS, and middy can only be imported by an ES module.
    for (const name of ['order-placed.mts', 'place-order.mts']) {
      cpSync(join(sources, `${name}.txt`), join(project, 'functions', name));
    }
  }

  it.each(['npm', 'pnpm', 'yarn'] as const)('%s installs it, and its stack is synthesised', async (name) => {
    const { install, run, settings, files } = managers[name];
    const project = join(outside.folder, name, 'shop');
    mkdirSync(project, { recursive: true });
    writeFileSync(
      join(project, 'package.json'),
      JSON.stringify({
        name: 'shop',
        private: true,
        type: 'module',
        dependencies: {
          '@middy/core': JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).dependencies[
            '@middy/core'
          ],
          'aws-cdk-lib': devDependencies['aws-cdk-lib'],
          constructs: devDependencies['constructs'],
          relaybox: `file:${tarball}`,
        },
        ...settings,
        devDependencies: { 'aws-cdk': devDependencies['aws-cdk'], esbuild: devDependencies['esbuild'] },
      }),
    );
    for (const [file, text] of Object.entries(files)) writeFileSync(join(project, file), text);
    writeFileSync(join(project, 'cdk.json'), JSON.stringify({ app: 'node app.ts' }));
    for (const file of ['app.ts', 'stack.ts']) cpSync(join(sources, `${file}.txt`), join(project, file));
    addFunctions(project);
    await exec(project, install);
    await exec(project, run, 'cdk', 'synth', '--quiet');
    expectDeployable(project);
  });

  it('a project as `cdk init app --language typescript` makes it synthesises with nothing but its stack written', async () => {
    const project = join(outside.folder, 'init', 'shop');
    mkdirSync(project, { recursive: true });
    const cdk = join(root, 'node_modules/aws-cdk/bin/cdk');
    await outside.exec(project, process.execPath, [
      cdk,
      'init',
      'app',
      '--language',
      'typescript',
      '--generate-only',
    ]);
    cpSync(join(sources, 'stack.ts.txt'), join(project, 'lib/shop-stack.ts'));
    addFunctions(project);
    const { install, run } = managers.npm;
    await exec(project, install);
    await exec(project, install, tarball, '@middy/core');
    // What the CDK's own page on NodejsFunction asks for; without it, it would build in Docker.
    await exec(project, install, '--save-dev', 'esbuild@0');
    await exec(project, run, 'cdk', 'synth', '--quiet');
    expectDeployable(project);
  });
});

/** The template has Relaybox's functions with their bundles, and the project's own handler with its code. */
function expectDeployable(project: string): void {
  const out = join(project, 'cdk.out');
  const template = JSON.parse(readFileSync(join(out, 'ShopStack.template.json'), 'utf8'));
  const types = Object.values<{ Type: string }>(template.Resources).map(({ Type }) => Type);
  expect(types).toContain('AWS::SQS::Queue');
  expect(types).toContain('AWS::Scheduler::Schedule');
  const bundles = readdirSync(out)
    .filter((name) => name.startsWith('asset.'))
    .flatMap((name) =>
      readdirSync(join(out, name))
        .filter((file) => /^index\.m?js$/.test(file))
        .map((file) => readFileSync(join(out, name, file), 'utf8')),
    );
  // Relay, ingest, maintain and migrate, and the two of the project.
  expect(bundles.length).toBeGreaterThanOrEqual(6);
  expect(bundles.filter((code) => code.includes('invoices_of_the_shop'))).toHaveLength(1);
  expect(bundles.filter((code) => code.includes('orders_of_the_shop'))).toHaveLength(1);
}
