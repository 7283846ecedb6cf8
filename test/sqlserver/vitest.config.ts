import { defineConfig } from 'vitest/config';

// The whole test run counts these suites as skipped where there is no server; who asks for them means them.
if (!process.env['RELAYBOX_SQLSERVER_URL']) {
  throw new Error(
    'RELAYBOX_SQLSERVER_URL is not set, so nothing was run: name a SQL Server where databases may be created, like sqlserver://sa:password@127.0.0.1:1433/master?encrypt=false',
  );
}

/** The suites that need a SQL Server, named by RELAYBOX_SQLSERVER_URL: `npm run test:sqlserver`. */
export default defineConfig({
  test: {
    include: ['test/sqlserver/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
  },
});
