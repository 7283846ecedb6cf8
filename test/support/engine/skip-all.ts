import { TestRunner } from 'vitest';

/**
 * Collects the tests of a file and runs none: each is reported as skipped, by name and in the count, and no hook of the
 * file runs. It is how vitest treats tests that no name pattern matches.
 */
export default class SkipAll extends TestRunner {
  constructor(config: ConstructorParameters<typeof TestRunner>[0]) {
    super({ ...config, testNamePattern: /(?!)/ });
  }
}
