import { ConfigurationError } from '../../../message/errors.ts';
import type { SqlExecutor } from '../../executor.ts';

/** What is used of a TypeORM `EntityManager` or `QueryRunner`. */
export interface TypeOrmTransaction {
  query(text: string, values?: unknown[]): Promise<unknown>;
  /** On a `QueryRunner`. */
  readonly isTransactionActive?: boolean;
  /** On an `EntityManager`; one that belongs to a transaction has it. */
  readonly queryRunner?: { readonly isTransactionActive: boolean };
}

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
  if (!(transaction.isTransactionActive ?? transaction.queryRunner?.isTransactionActive)) {
    throw new ConfigurationError(
      'fromTypeOrm takes the manager of dataSource.transaction(…), or a query runner with a transaction',
    );
  }
  return {
    async query(text, values) {
      const answer = await transaction.query(text, values);
      // For UPDATE and DELETE it answers the rows and their number.
      const counted = Array.isArray(answer) && Array.isArray(answer[0]) && typeof answer[1] === 'number';
      return { rows: (counted ? answer[0] : answer) as Record<string, unknown>[] };
    },
  };
}
