import type { TestProjectInlineConfiguration } from 'vitest/config';

const server = process.env['RELAYBOX_SQLSERVER_URL'];

/**
 * The files whose every test says what holds on both engines: they take the engine from `engine.ts`, and run once on
 * each. Until all are converted they are named here; a file in a `postgres/` folder is PostgreSQL's own and stays so.
 */
const onBothEngines = [
  'test/faults/handler-processes.test.ts',
  'test/faults/killed-relay.test.ts',
  'test/faults/order.test.ts',
  'test/faults/order-read-ahead.test.ts',
  'test/faults/outage.test.ts',
  'test/faults/person.test.ts',
  'test/faults/poison.test.ts',
  'test/integration/gateway.test.ts',
  'test/integration/handling-direct.test.ts',
  'test/integration/handling-keys.test.ts',
  'test/integration/handling-lost-leases.test.ts',
  'test/integration/handling.test.ts',
  'test/integration/handler-returns.test.ts',
  'test/integration/inbox-store-concurrency.test.ts',
  'test/integration/inbox-store-keys.test.ts',
  'test/integration/inbox-store.test.ts',
  'test/integration/ingest.test.ts',
  'test/integration/outbox-store-keys.test.ts',
  'test/integration/outbox-store-lanes.test.ts',
  'test/integration/outbox-store.test.ts',
  'test/integration/operations-inbox.test.ts',
  'test/integration/operations-maintain.test.ts',
  'test/integration/operations-names.test.ts',
  'test/integration/operations-outbox.test.ts',
  'test/integration/operations-relay.test.ts',
  'test/integration/operations-status.test.ts',
  'test/integration/cli-migrate-function.test.ts',
  'test/integration/cli.test.ts',
  'test/integration/operations-doctor.test.ts',
  'test/integration/lambda-functions.test.ts',
  'test/integration/lambda-handlers.test.ts',
  'test/integration/lambda-ingest.test.ts',
  'test/integration/lambda-producing.test.ts',
  'test/integration/lambda-transactional.test.ts',
  'test/integration/retry-waits.test.ts',
];

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
    globalSetup: ['test/support/global-postgres.ts', 'test/support/global-bundles.ts'],
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
