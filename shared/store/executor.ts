/**
 * The smallest thing that can run SQL inside somebody else's transaction. A `pg` client or pool client is one as
 * it is; adapters make one of a Kysely, Drizzle, Knex, Prisma or TypeORM transaction in a few lines.
 * Statements come with `$1`-style placeholders and every value is bound.
 */
export interface SqlExecutor {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}
