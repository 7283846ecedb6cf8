import type { MaintenanceStore } from '../operations/maintain.ts';
import type { Operations } from '../operations/operations.ts';
import type { Settings } from './config.ts';
import type { PoolOptions } from './engine.ts';

/** A database engine for `maintain` and `migrate`. Apart from `Engine`, so that no other function's bundle carries it. */
export interface AdminEngine {
  readonly name: string;
  connect(settings: Settings, pool: PoolOptions): Admin;
}

/** What changes tables and other people's messages. */
export interface Admin {
  readonly operations: Operations;
  readonly maintenance: MaintenanceStore;
  migrate(options: MigrateRequest): Promise<MigrateReport>;
  /** Throws `SchemaError` where the schema's version or a grant is missing. */
  check(): Promise<void>;
  end(): Promise<void>;
}

/** What a migration did, or in a dry run would do: steps by name. */
export interface MigrateReport {
  readonly applied: readonly string[];
  readonly pending: readonly string[];
  /** The inbox has the seed's unique index: only the default consumer is accepted there. */
  readonly seedIdentity: boolean;
}

/** What a deploy may ask of the migration. */
export interface MigrateRequest {
  /** Only say what is pending. */
  readonly dryRun?: boolean;
  /** Refuse tables with more rows, by the database's estimate. */
  readonly maxRows?: number;
  readonly replaceSeedIdentity?: boolean;
  /** How long to wait for another migration, and for locks. */
  readonly waitSeconds: number;
}
