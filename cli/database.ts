import { SchemaError } from '../shared/message/errors.ts';
import type { Operations } from '../shared/operations/operations.ts';

/** Database engines that the command line talks to. */
export type EngineName = 'postgres' | 'sqlserver';

/** Names of the tables, as far as they were given. */
export interface TableNames {
  readonly schema?: string;
  readonly outboxTable?: string;
  readonly inboxTable?: string;
}

/** How a migration may run. */
export interface MigrateRequest {
  readonly dryRun: boolean;
  readonly maxRows?: number;
  readonly waitSeconds?: number;
  readonly replaceSeedIdentity?: boolean;
}

/** What a migration did, or would do. */
export interface MigrationReport {
  readonly applied: readonly string[];
  readonly pending: readonly string[];
  readonly seedIdentity: boolean;
}

/** A database as the commands use it. */
export interface CommandDatabase {
  readonly operations: Operations;
  migrate(request: MigrateRequest): Promise<MigrationReport>;
  /** What is missing of the schema or of grants; nothing where all is there. */
  missing(): Promise<readonly string[]>;
  end(): Promise<void>;
}

/** Where a database is, and with which certificate it shows itself. */
export interface CommandTarget {
  readonly url: string;
  readonly ca?: string;
  readonly tables: TableNames;
}

const connection = { max: 3, applicationName: 'relaybox-cli' } as const;

/** The engine that a URL names. A scheme of neither is left to PostgreSQL, whose error says what a URL must be like. */
export function engineOf(url: string): EngineName {
  return /^(?:sqlserver|mssql):/i.test(url) ? 'sqlserver' : 'postgres';
}

/** Connects, at first use. Only the engine that is needed is loaded. */
export async function openDatabase(target: CommandTarget): Promise<CommandDatabase> {
  return engineOf(target.url) === 'sqlserver' ? await sqlServer(target) : await postgres(target);
}

/** The migrations as text. */
export async function migrationText(engine: EngineName, tables: TableNames): Promise<string> {
  if (engine === 'sqlserver') {
    const { migrationSql } = await import('../shared/store/sqlserver/migration-sql.ts');
    const { sqlServerNames } = await import('../shared/store/sqlserver/names.ts');
    return migrationSql(sqlServerNames(tables));
  }
  const { migrationSql } = await import('../shared/store/postgres/migration-sql.ts');
  const { postgresNames } = await import('../shared/store/postgres/names.ts');
  return migrationSql(postgresNames(tables));
}

async function postgres({ url, ca, tables }: CommandTarget): Promise<CommandDatabase> {
  const { connect } = await import('../shared/store/postgres/connections.ts');
  const { postgresOperations } = await import('../shared/store/postgres/operations.ts');
  const { postgresOutboxStore } = await import('../shared/store/postgres/outbox-store.ts');
  const { postgresNames } = await import('../shared/store/postgres/names.ts');
  const { migrate } = await import('../shared/store/postgres/migrate.ts');
  const { checkSchema } = await import('../shared/store/postgres/check.ts');
  const database = connect({ url }, { ...connection, ...(ca === undefined ? {} : { ca }) });
  const names = postgresNames(tables);
  const leases = postgresOutboxStore(database, tables);
  return {
    operations: postgresOperations({ source: database, tables, leases }).operations,
    migrate: (request) => migrate(database, names, request),
    missing: () => missingOf(() => checkSchema(database, names)),
    end: () => database.end(),
  };
}

async function sqlServer({ url, ca, tables }: CommandTarget): Promise<CommandDatabase> {
  const { connect } = await import('../shared/store/sqlserver/connections.ts');
  const { sqlServerOperations } = await import('../shared/store/sqlserver/operations.ts');
  const { sqlServerOutboxStore } = await import('../shared/store/sqlserver/outbox-store.ts');
  const { sqlServerNames } = await import('../shared/store/sqlserver/names.ts');
  const { migrate } = await import('../shared/store/sqlserver/migrate.ts');
  const { checkSchema } = await import('../shared/store/sqlserver/check.ts');
  const database = connect({ url }, { ...connection, ...(ca === undefined ? {} : { ca }) });
  const names = sqlServerNames(tables);
  const leases = sqlServerOutboxStore(database, tables);
  return {
    operations: sqlServerOperations({ source: database, tables, leases }).operations,
    migrate: (request) => migrate(database, names, request),
    missing: () => missingOf(() => checkSchema(database, names)),
    end: () => database.end(),
  };
}

async function missingOf(check: () => Promise<unknown>): Promise<readonly string[]> {
  try {
    await check();
    return [];
  } catch (error) {
    if (error instanceof SchemaError) return [error.message];
    throw error;
  }
}
