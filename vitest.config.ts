import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // It needs a package registry: `npm run test:package`.
    exclude: ['test/package/**'],
    globalSetup: ['test/support/global-postgres.ts', 'test/support/global-bundles.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 3,
  },
});
