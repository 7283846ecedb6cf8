import { defineConfig } from 'vitest/config';
import { onPostgres, onSqlServer } from './test/support/engine/projects.ts';

/** Each engine is a project: `npx vitest run --project postgres`. */
export default defineConfig({
  test: {
    projects: [onPostgres, onSqlServer],
    maxWorkers: 3,
  },
});
