/** The migrations in their order. A released file is never changed: what comes later gets a file of its own. */
export const migrationFiles = ['0001_tables.sql', '0002_backfill.sql', '0003_indexes.sql'] as const;

/** The schema version that this build works with. */
export const schemaVersion: number = migrationFiles.length;
