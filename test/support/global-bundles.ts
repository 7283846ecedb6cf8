import { buildFunctions } from '../../scripts/build-functions.ts';

/** The functions' bundles, which every synth in a test needs. Built once, before any test. */
export default async function setup(): Promise<void> {
  try {
    await buildFunctions();
  } catch (error) {
    // The tests of the infrastructure then say that a bundle is missing; all others need none.
    console.error('The functions could not be bundled:', error);
  }
}
