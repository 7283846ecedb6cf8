import { refuseNoTransaction, type TypeOrmTransaction } from '../../adapters/typeorm.ts';
import type { SqlExecutor } from '../../executor.ts';
import { renamed } from './placeholders.ts';

export type { TypeOrmTransaction } from '../../adapters/typeorm.ts';

/**
 * A TypeORM transaction (type `mssql`) as an executor: the manager that `dataSource.transaction` hands out, or a query
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
      // It binds @0, @1, …
      const answer = await transaction.query(
        renamed(text, (number) => `@${number - 1}`),
        values,
      );
      return { rows: (Array.isArray(answer) ? answer : []) as Record<string, unknown>[] };
    },
  };
}
