import { refuseNoTransaction, type TypeOrmTransaction } from '../../adapters/typeorm.ts';
import type { SqlExecutor } from '../../executor.ts';

export type { TypeOrmTransaction } from '../../adapters/typeorm.ts';

/**
 * A TypeORM transaction (PostgreSQL) as an executor: the manager that `dataSource.transaction` hands out, or a query
 * runner that began one.
 *
 * @example
 * await dataSource.transaction(async (manager) => {
 *   await manager.save(order);
 *   await outbox.add(fromTypeOrm(manager), { destination: 'orders', messageType: 'order.placed', payload: order });
 * });
 */
export function fromTypeOrm(transaction: TypeOrmTransaction): SqlExecutor {
  refuseNoTransaction(transaction);
  return {
    async query(text, values) {
      const answer = await transaction.query(text, values);
      // For UPDATE and DELETE it answers the rows and their number.
      const counted = Array.isArray(answer) && Array.isArray(answer[0]) && typeof answer[1] === 'number';
      return { rows: (counted ? answer[0] : answer) as Record<string, unknown>[] };
    },
  };
}
