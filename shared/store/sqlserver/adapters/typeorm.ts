import { ConfigurationError } from '../../../message/errors.ts';
import type { SqlExecutor } from '../../executor.ts';
import { renamed } from './placeholders.ts';

/** What is used of a TypeORM `EntityManager` or `QueryRunner`. */
export interface TypeOrmTransaction {
  query(text: string, values?: unknown[]): Promise<unknown>;
  /** On a `QueryRunner`. */
  readonly isTransactionActive?: boolean;
  /** On an `EntityManager`; one that belongs to a transaction has it. */
  readonly queryRunner?: { readonly isTransactionActive: boolean };
}

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
  if (!(transaction.isTransactionActive ?? transaction.queryRunner?.isTransactionActive)) {
    throw new ConfigurationError(
      'fromTypeOrm takes the manager of dataSource.transaction(…), or a query runner with a transaction',
    );
  }
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
