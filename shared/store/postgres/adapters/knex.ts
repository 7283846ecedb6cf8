import { type KnexTransaction, knexRunner } from '../../adapters/knex.ts';
import type { SqlExecutor } from '../../executor.ts';

export type { KnexTransaction } from '../../adapters/knex.ts';

/** `$1` and the like, and quoted text, in which they are none. */
const pieces = /"(?:[^"]|"")*"|'(?:[^']|'')*'|\$(\d+)|\?/g;

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
  const run = knexRunner(trx, pieces);
  return { query: async (text, values) => (await run(text, values)) as { rows: Record<string, unknown>[] } };
}
