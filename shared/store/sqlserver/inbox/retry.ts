import { triedAgain } from '../../tried-again.ts';
import { deadlock, sqlNumber } from '../connection-errors.ts';

/** True for a duplicate key of a unique index or constraint. */
export function duplicateKey(error: unknown): boolean {
  const number = sqlNumber(error);
  return number === 2601 || number === 2627;
}

/**
 * Runs a statement or a transaction of Relaybox's own again, where the server undid it for another's sake: as a
 * deadlock's victim, or since two made the same row at once.
 */
export async function retried<T>(work: () => Promise<T>): Promise<T> {
  return await triedAgain(work, (error) => deadlock(error) || duplicateKey(error));
}
