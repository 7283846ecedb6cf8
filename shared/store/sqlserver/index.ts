/** `relaybox/sqlserver`: the outbox on SQL Server, for any transaction, and what keeps its tables up to date. */
export type { AddResults, Outbox } from '../../outbox/producer.ts';
export type { SqlExecutor } from '../executor.ts';
export { fromKnex, type KnexTransaction } from './adapters/knex.ts';
export { fromKysely, type KyselyTransaction } from './adapters/kysely.ts';
export { fromPrisma, type PrismaTransaction } from './adapters/prisma.ts';
export { fromTypeOrm, type TypeOrmTransaction } from './adapters/typeorm.ts';
export { checkSchema, type Needs, needs, type SchemaReport } from './check.ts';
export type {
  SqlServerCredentials,
  SqlServerHost,
  SqlServerSettings,
  SqlServerUrl,
} from './connection-settings.ts';
export { type ConnectOptions, connect, type SqlServerClient, type SqlServerDatabase } from './connections.ts';
export type { Database, DatabaseResult } from './database.ts';
export { sqlServerInboxStore } from './inbox-store.ts';
export {
  type MigrateOptions,
  type MigrationReport,
  type MigrationSource,
  migrate,
} from './migrate.ts';
export { migrationSql } from './migration-sql.ts';
export { type Names, type SqlServerTables, sqlServerNames } from './names.ts';
export { sqlServerOutboxStore } from './outbox-store.ts';
export {
  type SqlServerOutboxOptions,
  type SqlServerProducerTransaction,
  sqlServerOutbox,
} from './producer.ts';
export type { SqlServerTransaction } from './transaction.ts';
