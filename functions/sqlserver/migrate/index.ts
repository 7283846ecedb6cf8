import { migrateFor } from '../../../shared/lambda/migrate.ts';
import { sqlServerAdmin } from '../../../shared/lambda/sqlserver/admin.ts';

/** Brings the tables to this build's version on SQL Server, at deploy. */
export const handler = migrateFor(sqlServerAdmin)();
