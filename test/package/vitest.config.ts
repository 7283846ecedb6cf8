import { defineConfig } from 'vitest/config';

/** Needs a package registry, so it isn't part of `npm test`: `npm run test:package`. */
export default defineConfig({
  test: {
    include: ['test/package/*.test.ts'],
    globalSetup: ['test/support/global-postgres.ts'],
    // Each file packs the repository, which builds it anew.
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 300_000,
  },
});
