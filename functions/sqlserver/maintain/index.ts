import { maintainFor } from '../../../shared/lambda/maintain.ts';
import { sqlServerAdmin } from '../../../shared/lambda/sqlserver/admin.ts';

/** Retention and figures on a schedule, on SQL Server; operators' commands when it is asked one. */
export const handler = maintainFor(sqlServerAdmin)();
