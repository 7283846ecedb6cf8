import { type KyselyTransaction, kyselyExecutor } from '../../adapters/kysely.ts';
import type { SqlExecutor } from '../../executor.ts';
import { renamed } from './placeholders.ts';

export type { KyselyTransaction } from '../../adapters/kysely.ts';

/**
 * A Kysely transaction (`MssqlDialect`) as an executor.
 *
 * @example
 * await db.transaction().execute(async (trx) => {
 *   await trx.insertInto('orders').values(order).execute();
 *   await outbox.add(fromKysely(trx), { destination: 'orders', messageType: 'order.placed', payload: order });
 * });
 */
export function fromKysely(trx: KyselyTransaction): SqlExecutor {
  // Its MssqlDialect binds @1, @2, …
  return kyselyExecutor(trx, (text) => renamed(text, (number) => `@${number}`));
}
