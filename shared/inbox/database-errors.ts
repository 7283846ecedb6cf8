import { MessageRefused } from '../message/errors.ts';

/**
 * SQLSTATE classes by which a database refuses what is in a row: data exceptions, violated constraints, and limits of
 * the program such as an index entry's size. Everything else says that it can't take rows now.
 */
const refusing = ['22', '23', '54'];

/** SQL Server's numbers for the same: truncation, null, constraint, conversion, index key size. */
const refusingNumbers = [245, 515, 547, 1946, 2628, 8114, 8115, 8152];

/** True where the error is about a row's content, so that storing it again would end the same way. */
export function refusesRow(error: unknown): boolean {
  if (error instanceof MessageRefused) return true;
  const { code, number } = facts(error);
  return refusing.includes(code.slice(0, 2)) || refusingNumbers.includes(number);
}

/** The SQLSTATE or number of the error or of what caused it, by codes and never by texts: servers speak many languages. */
function facts(error: unknown): { readonly code: string; readonly number: number } {
  let current = error as
    | { readonly code?: unknown; readonly number?: unknown; readonly cause?: unknown }
    | undefined;
  for (let depth = 0; depth < 5 && typeof current === 'object' && current !== null; depth++) {
    const { code, number } = current;
    if (typeof number === 'number') return { code: '', number };
    if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)) return { code, number: 0 };
    current = current.cause as typeof current;
  }
  return { code: '', number: 0 };
}
