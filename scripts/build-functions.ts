import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Metafile } from 'esbuild';
import { bundlingOptions } from '../infra/constructs/bundling.ts';

/**
 * Bundles the functions, one folder for each engine and function, so that no PostgreSQL function carries the driver of
 * SQL Server: `dist/functions/<engine>/<function>/index.mjs`. The same sources make the same bytes, wherever they are
 * built, so that a deployment changes only what has changed.
 */

const root = fileURLToPath(new URL('..', import.meta.url));

/** Where an engine's functions and migrations are. */
const ENGINES = {
  postgres: { functions: 'functions', migrations: 'shared/store/postgres/migrations' },
  sqlserver: { functions: 'functions/sqlserver', migrations: 'shared/store/sqlserver/migrations' },
} as const;

const FUNCTIONS = {
  relay: 'outbox-relay',
  ingest: 'inbox-ingest',
  maintain: 'maintain',
  migrate: 'migrate',
} as const;

/**
 * What tedious brings for logins to Azure, a third of it: RDS has none of them, and a login by password never loads it.
 */
const STUBBED = ['@azure/identity', '@azure/keyvault-keys', '@azure/core-auth'];

/** Builds every bundle whose sources are there, and answers what went into each. */
export async function buildFunctions(): Promise<ReadonlyMap<string, Metafile>> {
  const made = new Map<string, Metafile>();
  for (const [engine, { functions, migrations }] of Object.entries(ENGINES)) {
    for (const [name, folder] of Object.entries(FUNCTIONS)) {
      const entry = join(functions, folder, 'index.ts');
      if (!existsSync(join(root, entry))) continue;
      const target = join('dist/functions', engine, name);
      made.set(`${engine}/${name}`, await bundle(entry, target));
      // They are read from beside the code that runs them.
      if (name === 'migrate') copyMigrations(migrations, join(target, 'migrations'));
    }
  }
  return made;
}

async function bundle(entry: string, target: string): Promise<Metafile> {
  const { outputFiles, metafile } = await build({
    ...bundlingOptions,
    mainFields: [...bundlingOptions.mainFields],
    external: [...bundlingOptions.external],
    absWorkingDir: root,
    entryPoints: [entry],
    outfile: join(target, 'index.mjs'),
    alias: Object.fromEntries(STUBBED.map((name) => [name, './scripts/stubs/empty.ts'])),
    minify: true,
    metafile: true,
    write: false,
  });
  for (const file of outputFiles) put(file.path, file.contents);
  return metafile;
}

function copyMigrations(from: string, to: string): void {
  for (const file of globSync('*.sql', { cwd: join(root, from) })) {
    mkdirSync(join(root, to), { recursive: true });
    cpSync(join(root, from, file), join(root, to, file));
  }
}

/** Leaves a file alone that is as it should be: somebody may be reading it. */
function put(path: string, contents: Uint8Array): void {
  if (existsSync(path) && readFileSync(path).equals(contents)) return;
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, contents);
}

if (import.meta.main) {
  for (const [name, { outputs }] of await buildFunctions()) {
    const bytes = Object.values(outputs).reduce((sum, output) => sum + output.bytes, 0);
    console.log(`${name.padEnd(20)} ${String(Math.round(bytes / 1000)).padStart(5)} KB`);
  }
}
