import { readdirSync, readFileSync } from 'node:fs';
import type { TestProjectInlineConfiguration } from 'vitest/config';

const server = process.env['RELAYBOX_SQLSERVER_URL'];

/**
 * The files whose every test says what holds on both engines: those that take the engine from this folder. They run
 * once on each.
 */
const onBothEngines = ['test/faults', 'test/integration'].flatMap((folder) =>
  readdirSync(folder)
    .map((name) => `${folder}/${name}`)
    .filter((file) => file.endsWith('.test.ts') && readFileSync(file, 'utf8').includes('/support/engine/')),
);

/** A process's zone that no server has, half an hour off: what is computed from the local time of a machine shows. */
const env = { TZ: 'America/St_Johns' };

/** Everything, on PostgreSQL, which the run brings along. */
export const onPostgres: TestProjectInlineConfiguration = {
  test: {
    name: 'postgres',
    provide: { engine: 'postgres' },
    env,
    include: ['test/**/*.test.ts'],
    // The first needs a package registry: `npm run test:package`. The second has a server of its own.
    exclude: ['test/package/**', 'test/sqlserver/**'],
    globalSetup: [
      'test/support/global-folder.ts',
      'test/support/global-postgres.ts',
      'test/support/global-bundles.ts',
    ],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
  },
};

/**
 * On the SQL Server that RELAYBOX_SQLSERVER_URL names. Without it every test is collected and reported as skipped, by
 * name and in the count, never as passed. The files then share a process and its modules, so that this costs seconds.
 */
export const onSqlServer: TestProjectInlineConfiguration = {
  test: {
    name: 'sqlserver',
    provide: { engine: 'sqlserver' },
    env,
    include: [...onBothEngines, 'test/sqlserver/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    ...(server ? {} : { runner: 'test/support/engine/skip-all.ts', isolate: false }),
  },
};
