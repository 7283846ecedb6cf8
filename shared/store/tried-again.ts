const ATTEMPTS = 5;

/**
 * Runs a statement or a transaction of Relaybox's own again, where the server undid it for another's sake: `passing`
 * knows such errors. Never one of the application's, which may have done more. Throws the last error after five attempts.
 */
export async function triedAgain<T>(
  work: () => Promise<T>,
  passing: (error: unknown) => boolean,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS || !passing(error)) throw error;
    }
  }
}
