import { defineConfig } from 'vitest/config';
import { onSqlServer } from '../support/engine/projects.ts';

// The whole test run counts these suites as skipped where there is no server; who asks for them means them.
if (!process.env['RELAYBOX_SQLSERVER_URL']) {
  throw new Error(
    'RELAYBOX_SQLSERVER_URL is not set, so nothing was run: name a SQL Server where databases may be created, like sqlserver://sa:password@127.0.0.1:1433/master?encrypt=false',
  );
}

/**
 * What runs on a SQL Server, named by RELAYBOX_SQLSERVER_URL: `npm run test:sqlserver`. The promises of both engines run with
 * READ_COMMITTED_SNAPSHOT as RELAYBOX_SQLSERVER_SNAPSHOT says (OFF where it doesn't), the suites of this folder with both.
 */
export default defineConfig({
  test: {
    projects: [onSqlServer],
    maxWorkers: 2,
  },
});
