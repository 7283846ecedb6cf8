import { ConfigurationError } from '../../../message/errors.ts';
import type { SqlExecutor } from '../../executor.ts';
import { positional } from './placeholders.ts';

/** What is used of a Knex transaction. */
export interface KnexTransaction {
  readonly isTransaction?: boolean;
  raw(text: string, bindings: readonly unknown[]): PromiseLike<unknown>;
}

/**
 * A Knex transaction (client `mssql`) as an executor.
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
      return { rows: ((await trx.raw(sql, bindings)) ?? []) as Record<string, unknown>[] };
    },
  };
}
