import { ConfigurationError } from '../../../message/errors.ts';
import type { SqlExecutor } from '../../executor.ts';

/** What is used of a Knex transaction. */
export interface KnexTransaction {
  readonly isTransaction?: boolean;
  raw(text: string, bindings: readonly unknown[]): PromiseLike<unknown>;
}

/**
 * A Knex transaction (client `pg`) as an executor.
 *
 * @example
 * await knex.transaction(async (trx) => {
 *   await trx('orders').insert(order);
 *   await outbox.add(fromKnex(trx), { destination: 'orders', messageType: 'order.placed', payload: order });
 * });
 */
export function fromKnex(trx: KnexTransaction): SqlExecutor {
  if (!trx.isTransaction)
    throw new ConfigurationError('fromKnex takes the trx of knex.transaction(), not knex');
  return {
    async query(text, values) {
      const { sql, bindings } = positional(text, values);
      return (await trx.raw(sql, bindings)) as { rows: Record<string, unknown>[] };
    },
  };
}

/** Knex binds `?` by position. What stands in quotes is left alone, but for a question mark, which it would bind even there. */
function positional(text: string, values: readonly unknown[]): { sql: string; bindings: unknown[] } {
  const bindings: unknown[] = [];
  const sql = text.replace(/"(?:[^"]|"")*"|'(?:[^']|'')*'|\$(\d+)|\?/g, (part, number?: string) => {
    if (number === undefined) return part.replaceAll('?', '\\?');
    bindings.push(values[Number(number) - 1]);
    return '?';
  });
  return { sql, bindings };
}
