import type { TestProject } from 'vitest/node';
import { startPostgres } from '../../local/postgres.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Superuser URL of the PostgreSQL server that all test files share. */
    postgresUrl: string;
  }
}

/** One server for the whole run; every test file makes a database of its own on it. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env['RELAYBOX_TEST_POSTGRES_URL'];
  if (given) {
    project.provide('postgresUrl', given);
    return undefined;
  }
  const server = await startPostgres({ durable: false });
  project.provide('postgresUrl', server.url);
  return () => server.stop();
}
