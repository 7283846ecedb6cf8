import { type KnexTransaction, knexRunner } from '../../adapters/knex.ts';
import type { SqlExecutor } from '../../executor.ts';
import { pieces } from './placeholders.ts';

export type { KnexTransaction } from '../../adapters/knex.ts';

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
  const run = knexRunner(trx, pieces);
  return {
    query: async (text, values) => ({ rows: ((await run(text, values)) ?? []) as Record<string, unknown>[] }),
  };
}
