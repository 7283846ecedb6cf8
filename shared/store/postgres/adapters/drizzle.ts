import type { SqlExecutor } from '../../executor.ts';

/** What is used of a Drizzle transaction: its session, which runs a statement as it is. */
export interface DrizzleTransaction {
  readonly _: {
    readonly session: {
      prepareQuery(
        query: { sql: string; params: unknown[] },
        fields: undefined,
        name: undefined,
        isResponseInArrayMode: boolean,
      ): { execute(): Promise<unknown> };
    };
  };
  /** Only a transaction has it; so that `db` itself doesn't compile here. */
  rollback(): never;
}

/**
 * A Drizzle transaction (driver `node-postgres`) as an executor.
 *
 * @example
 * await db.transaction(async (tx) => {
 *   await tx.insert(orders).values(order);
 *   await outbox.add(fromDrizzle(tx), { destination: 'orders', messageType: 'order.placed', payload: order });
 * });
 */
export function fromDrizzle(tx: DrizzleTransaction): SqlExecutor {
  return {
    async query(text, values) {
      const prepared = tx._.session.prepareQuery({ sql: text, params: values }, undefined, undefined, false);
      const answer = await prepared.execute();
      // Drizzle's other PostgreSQL drivers answer the rows alone.
      return Array.isArray(answer) ? { rows: answer } : (answer as { rows: Record<string, unknown>[] });
    },
  };
}
