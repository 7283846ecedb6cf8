import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { bundlingOptions } from '../infra/constructs/bundling.ts';

/**
 * Bundles the functions, one folder for each engine and function, so that no PostgreSQL function carries the driver of
 * SQL Server: `dist/bundles/<engine>/<function>/index.mjs`. The same sources make the same bytes, wherever they are
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

/** What is stubbed, and by what. Each is reached on no way that these functions go. */
const STUBS = {
  // What tedious brings for logins to Azure, a third of it: RDS has none of them, and a login by password never loads it.
  './scripts/stubs/empty.ts': ['@azure/identity', '@azure/keyvault-keys', '@azure/core-auth'],
  './scripts/stubs/credentials.ts': [
    '@aws-sdk/credential-provider-cognito-identity',
    '@aws-sdk/credential-provider-ini',
    '@aws-sdk/credential-provider-login',
    '@aws-sdk/credential-provider-process',
    '@aws-sdk/credential-provider-sso',
    '@aws-sdk/credential-provider-web-identity',
  ],
} as const;

/**
 * A third of the driver of SQL Server are tables for VARCHAR columns in East Asian code pages. Every column that these
 * functions read is NVARCHAR; should one not be, the error says so.
 */
const withoutCodePages: Plugin = {
  name: 'without-code-pages',
  setup({ onLoad }) {
    onLoad({ filter: /iconv-lite\/encodings\/tables\/\w+\.json$/ }, () => ({
      contents: `throw new Error("Relaybox's functions read NVARCHAR columns only: this bundle has no East Asian code pages")`,
      loader: 'js',
    }));
  },
};

/** What went into a bundle, and how large it is. */
export interface Bundle {
  /** `<engine>/<function>` */
  readonly name: string;
  readonly folder: string;
  readonly bytes: number;
  readonly inputs: readonly string[];
}

/** Builds every bundle whose sources are there. */
export async function buildFunctions(
  target: string = join(root, 'dist/bundles'),
): Promise<readonly Bundle[]> {
  const entries = Object.entries(ENGINES).flatMap(([engine, { functions, migrations }]) =>
    Object.entries(FUNCTIONS).map(([name, folder]) => ({
      name: `${engine}/${name}`,
      entry: join(functions, folder, 'index.ts'),
      // They are read from beside the code that runs them.
      migrations: name === 'migrate' ? migrations : undefined,
    })),
  );
  const there = entries.filter(({ entry }) => existsSync(join(root, entry)));
  return await Promise.all(
    there.map(async ({ name, entry, migrations }) => {
      const folder = join(target, name);
      if (migrations !== undefined) copyMigrations(migrations, join(folder, 'migrations'));
      return { name, folder, ...(await bundle(entry, folder)) };
    }),
  );
}

async function bundle(entry: string, folder: string): Promise<Pick<Bundle, 'bytes' | 'inputs'>> {
  const { outputFiles, metafile } = await build({
    ...bundlingOptions,
    mainFields: [...bundlingOptions.mainFields],
    external: [...bundlingOptions.external],
    absWorkingDir: root,
    entryPoints: [entry],
    outfile: join(folder, 'index.mjs'),
    alias: Object.fromEntries(
      Object.entries(STUBS).flatMap(([stub, names]) => names.map((name) => [name, stub])),
    ),
    plugins: [withoutCodePages],
    minify: true,
    // The driver of SQL Server brings tables of characters, which written as escapes would be thrice as long.
    charset: 'utf8',
    metafile: true,
    write: false,
  });
  for (const file of outputFiles) put(file.path, file.contents);
  const bytes = outputFiles.reduce((sum, file) => sum + file.contents.byteLength, 0);
  return { bytes, inputs: Object.keys(metafile.inputs) };
}

function copyMigrations(from: string, to: string): void {
  const files = globSync('*.sql', { cwd: join(root, from) });
  for (const file of globSync('*', { cwd: to })) if (!files.includes(file)) rmSync(join(to, file));
  for (const file of files) {
    put(join(to, file), readFileSync(join(root, from, file)));
  }
}

/** Leaves a file alone that is as it should be, and replaces others at once: somebody may be reading them. */
function put(path: string, contents: Uint8Array): void {
  if (existsSync(path) && readFileSync(path).equals(contents)) return;
  mkdirSync(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}`;
  writeFileSync(temporary, contents);
  renameSync(temporary, path);
}

if (import.meta.main) {
  for (const { name, bytes } of await buildFunctions()) {
    console.log(`${name.padEnd(20)} ${String(Math.round(bytes / 1000)).padStart(5)} KB`);
  }
}
