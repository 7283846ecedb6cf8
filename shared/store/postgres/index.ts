/** `relaybox/postgres`: the outbox on PostgreSQL, for any transaction, and what keeps its tables up to date. */
export type { AddResults, Outbox } from '../../outbox/producer.ts';
export type { SqlExecutor } from '../executor.ts';
export { type DrizzleTransaction, fromDrizzle } from './adapters/drizzle.ts';
export { fromKnex, type KnexTransaction } from './adapters/knex.ts';
export { fromKysely, type KyselyTransaction } from './adapters/kysely.ts';
export { fromPrisma, type PrismaTransaction } from './adapters/prisma.ts';
export { fromTypeOrm, type TypeOrmTransaction } from './adapters/typeorm.ts';
export { checkSchema, type Needs, needs, type SchemaReport } from './check.ts';
export type {
  PostgresCredentials,
  PostgresHost,
  PostgresSettings,
  PostgresUrl,
} from './connection-settings.ts';
export { type ConnectOptions, connect, type PostgresDatabase } from './connections.ts';
export type { Database, DatabaseResult } from './database.ts';
export { postgresInboxStore } from './inbox-store.ts';
export {
  type MigrateOptions,
  type MigrationReport,
  type MigrationSource,
  migrate,
} from './migrate.ts';
export { migrationSql } from './migration-sql.ts';
export { type Names, type PostgresTables, postgresNames } from './names.ts';
export { postgresOutboxStore } from './outbox-store.ts';
export { type PostgresOutboxOptions, postgresOutbox } from './producer.ts';
