import type { SqlExecutor } from '../../executor.ts';
import { renamed } from './placeholders.ts';

/** What is used of a Prisma interactive transaction. */
export interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: unknown[]): PromiseLike<unknown>;
  /** A client has it, a transaction doesn't: so that `prisma` itself doesn't compile here. */
  readonly $transaction?: never;
}

/**
 * A Prisma interactive transaction (SQL Server) as an executor. Every value is bound; "unsafe" is Prisma's name for
 * taking a statement as text.
 *
 * @example
 * await prisma.$transaction(async (tx) => {
 *   await tx.order.create({ data: order });
 *   await outbox.add(fromPrisma(tx), { destination: 'orders', messageType: 'order.placed', payload: order });
 * });
 */
export function fromPrisma(tx: PrismaTransaction): SqlExecutor {
  return {
    async query(text, values) {
      // It binds @P1, @P2, …, and a server may tell capitals apart.
      const sql = renamed(text, (number) => `@P${number}`);
      return { rows: (await tx.$queryRawUnsafe(sql, ...values)) as Record<string, unknown>[] };
    },
  };
}
