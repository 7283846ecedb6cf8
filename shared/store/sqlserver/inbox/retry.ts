import { deadlock, sqlNumber } from '../connection-errors.ts';

const ATTEMPTS = 5;

/** True for a duplicate key of a unique index or constraint. */
export function duplicateKey(error: unknown): boolean {
  const number = sqlNumber(error);
  return number === 2601 || number === 2627;
}

/** True where what failed had no effect and may well do when it is tried again. */
function passing(error: unknown): boolean {
  return deadlock(error) || duplicateKey(error);
}

/**
 * Runs a statement or a transaction of Relaybox's own again, where the server undid it for another's sake: as a
 * deadlock's victim, or since two made the same row at once. Never one of the application's, which may have done more.
 */
export async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS || !passing(error)) throw error;
    }
  }
}
