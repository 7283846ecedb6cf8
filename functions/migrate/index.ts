import { migrateFor } from '../../shared/lambda/migrate.ts';
import { postgresAdmin } from '../../shared/lambda/postgres/admin.ts';

/** Brings the tables to this build's version, at deploy. */
export const handler = migrateFor(postgresAdmin)();
