import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pageFiles } from '../../cli/console/page.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** What each code block of the README needs before it: what the text around it takes for granted. */
const preludes = [
  `import pg from 'pg';
const client = new pg.Client({ connectionString: process.env['RELAYBOX_DATABASE_URL'] });
await client.connect();
`,
  '',
  '',
  '',
];
const postludes = ['await client.end();\nif (!result?.added) throw new Error("not added");\n', '', '', ''];

describe('the tarball, in an empty project of somebody else’s', () => {
  let project: string;
  let database: TestDatabase;

  /** Runs a program in the project; an error carries its output. */
  async function inProject(file: string, args: readonly string[]): Promise<string> {
    // Nothing of this repository is to be found by accident.
    const path = [dirname(process.execPath), ...(process.env['PATH'] ?? '').split(':')]
      .filter(
        (folder) => !folder.startsWith(join(root, 'node_modules')) || folder === dirname(process.execPath),
      )
      .join(':');
    const env = {
      ...process.env,
      PATH: path,
      RELAYBOX_DATABASE_URL: database.url,
      RELAYBOX_SOURCE: 'billing',
      RELAYBOX_INBOX_SOURCE: 'shop',
    };
    try {
      return (await run(file, args, { cwd: project, env, maxBuffer: 64 * 1024 * 1024 })).stdout;
    } catch (error) {
      const { stdout, stderr } = error as { stdout?: string; stderr?: string };
      throw new Error(`${file} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause: error });
    }
  }

  async function compile(name: string, options: Record<string, unknown>): Promise<string> {
    const config = {
      compilerOptions: { target: 'ES2023', strict: true, types: ['node'], rootDir: 'src', ...options },
      include: ['src'],
    };
    writeFileSync(join(project, name), JSON.stringify(config));
    return await inProject(process.execPath, ['node_modules/typescript/bin/tsc', '-p', name]);
  }

  beforeAll(async () => {
    database = await createDatabase();
    project = mkdtempSync(join(tmpdir(), 'relaybox-package-'));
    await run('npm', ['pack', '--pack-destination', project], { cwd: root });
    const tarball = readdirSync(project).find((file) => file.endsWith('.tgz'));
    expect(tarball).toBeDefined();
    writeFileSync(join(project, 'package.json'), '{"name":"somebody","private":true,"type":"module"}');
    const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    await inProject('npm', [
      'install',
      '--no-audit',
      '--no-fund',
      `./${tarball}`,
      ...['typescript', '@types/node', 'zod'].map((name) => `${name}@${devDependencies[name]}`),
    ]);
    mkdirSync(join(project, 'src'));
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    const examples = [...readme.matchAll(/^```ts\n(.*?)^```/gms)]
      .map((match) => match[1] ?? '')
      // Infrastructure needs the CDK beside it: see cdk.test.ts.
      .filter((example) => !example.includes("'relaybox/cdk'"));
    expect(examples).toHaveLength(preludes.length);
    for (const [n, example] of examples.entries()) {
      writeFileSync(join(project, `src/example-${n + 1}.ts`), `${preludes[n]}${example}${postludes[n]}`);
    }
    cpSync(join(root, 'test/package/project/main.ts.txt'), join(project, 'src/main.ts'));
  });

  afterAll(async () => {
    rmSync(project, { recursive: true, force: true });
    await database.drop();
  });

  it('holds no tests, no sources and nothing of the laptop’s run', () => {
    const shipped = readdirSync(join(project, 'node_modules/relaybox'), {
      recursive: true,
      encoding: 'utf8',
    });
    expect(shipped.filter((file) => /^(test|local|examples|shared|infra|scripts)(\/|$)/.test(file))).toEqual(
      [],
    );
    expect(shipped.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))).toEqual([]);
  });

  it('holds the page of the console', () => {
    const page = readdirSync(join(project, 'node_modules/relaybox/dist/cli/console/page'));
    expect(page.toSorted()).toEqual(Object.keys(pageFiles).toSorted());
  });

  it('compiles the README’s examples as a Node project', async () => {
    await compile('tsconfig.json', { module: 'NodeNext', outDir: 'out', skipLibCheck: true });
  });

  it('compiles them for a bundler', async () => {
    const bundler = { module: 'ESNext', moduleResolution: 'bundler', noEmit: true, skipLibCheck: true };
    await compile('tsconfig.bundler.json', bundler);
  });

  it('has declarations that name nothing which is missing', async () => {
    // Other packages' declarations are checked along; what is wrong in those alone is not ours (middy names a package it doesn't bring).
    const output = await compile('tsconfig.strict.json', {
      module: 'NodeNext',
      noEmit: true,
      skipLibCheck: false,
    }).catch((error: Error) => error.message);
    const ours = /^(src|node_modules\/relaybox)\/.*error TS.*$/gm;
    expect(output.match(ours) ?? []).toEqual([]);
  });

  it('migrates a database by its URL, and runs the examples against it', async () => {
    await inProject('npx', ['relaybox', 'migrate', '--url', database.url]);
    const output = await inProject(process.execPath, ['out/main.js']);
    expect(output).toContain('all examples ran');
    const status = await inProject('npx', ['relaybox', 'status', '--url', database.url, '--json']);
    expect(JSON.parse(status)).toBeTypeOf('object');
  });
});
