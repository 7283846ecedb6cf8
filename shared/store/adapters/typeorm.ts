import { ConfigurationError } from '../../message/errors.ts';

/** What is used of a TypeORM `EntityManager` or `QueryRunner`. */
export interface TypeOrmTransaction {
  query(text: string, values?: unknown[]): Promise<unknown>;
  /** On a `QueryRunner`. */
  readonly isTransactionActive?: boolean;
  /** On an `EntityManager`; one that belongs to a transaction has it. */
  readonly queryRunner?: { readonly isTransactionActive: boolean };
}

/** Throws `ConfigurationError` for what is in no transaction. */
export function refuseNoTransaction(transaction: TypeOrmTransaction): void {
  if (transaction.isTransactionActive ?? transaction.queryRunner?.isTransactionActive) return;
  throw new ConfigurationError(
    'fromTypeOrm takes the manager of dataSource.transaction(…), or a query runner with a transaction',
  );
}
