import type { Database } from '../../shared/store/postgres/database.ts';
import { migrate } from '../../shared/store/postgres/migrate.ts';
import { type Names, type PostgresTables, postgresNames } from '../../shared/store/postgres/names.ts';
import { createDatabase, type TestDatabase } from './database.ts';

/** A database of one test file's own, with Relaybox's tables in it. */
export interface MigratedDatabase extends TestDatabase {
  readonly database: Database;
  readonly tables: Names;
}

/** Creates a database with the tables. `settings` become the database's defaults, e.g. `{ timezone: 'Asia/Kolkata' }`. */
export async function createMigratedDatabase(
  settings: Record<string, string> = {},
  tables: PostgresTables = {},
): Promise<MigratedDatabase> {
  const created = await createDatabase(settings);
  const names = postgresNames(tables);
  await migrate(created.pool, names);
  return { ...created, database: created.pool, tables: names };
}
