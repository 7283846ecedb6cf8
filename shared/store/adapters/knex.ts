import { ConfigurationError } from '../../message/errors.ts';

/** What is used of a Knex transaction. */
export interface KnexTransaction {
  readonly isTransaction?: boolean;
  raw(text: string, bindings: readonly unknown[]): PromiseLike<unknown>;
}

/**
 * Runs statements in a Knex transaction, which binds `?` by position; a value is given again where it is used again.
 *
 * @param pieces matches a placeholder, with its number as the only group, a question mark, and what may stand between
 * them and is no placeholder: quoted text
 */
export function knexRunner(
  trx: KnexTransaction,
  pieces: RegExp,
): (text: string, values: readonly unknown[]) => PromiseLike<unknown> {
  if (!trx.isTransaction)
    throw new ConfigurationError('fromKnex takes the trx of knex.transaction(), not knex');
  return (text, values) => {
    const bindings: unknown[] = [];
    const sql = text.replace(pieces, (piece, number?: string) => {
      // Knex reads a question mark as a placeholder even in quoted text.
      if (number === undefined) return piece.replaceAll('?', '\\?');
      bindings.push(values[Number(number) - 1]);
      return '?';
    });
    return trx.raw(sql, bindings);
  };
}
