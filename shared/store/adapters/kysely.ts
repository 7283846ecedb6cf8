import { ConfigurationError } from '../../message/errors.ts';
import type { SqlExecutor } from '../executor.ts';

/** What is used of a Kysely transaction. */
export interface KyselyTransaction {
  readonly isTransaction: boolean;
  executeQuery(query: RawQuery): Promise<{ readonly rows: unknown[] }>;
}

/** The part of Kysely's `CompiledQuery` that a raw statement has. */
interface RawQuery {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly query: {
    readonly kind: 'RawNode';
    readonly sqlFragments: readonly string[];
    readonly parameters: readonly never[];
  };
  readonly queryId: { readonly queryId: string };
}

let queries = 0;

/** A Kysely transaction as an executor. `dialect` writes a statement as the transaction's dialect binds it. */
export function kyselyExecutor(
  trx: KyselyTransaction,
  dialect: (text: string) => string = (text) => text,
): SqlExecutor {
  if (!trx.isTransaction)
    throw new ConfigurationError('fromKysely takes the trx of db.transaction(), not db');
  return {
    async query(text, values) {
      const sql = dialect(text);
      const { rows } = await trx.executeQuery({
        sql,
        parameters: values,
        query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
        queryId: { queryId: `relaybox-${++queries}` },
      });
      return { rows: rows as Record<string, unknown>[] };
    },
  };
}
