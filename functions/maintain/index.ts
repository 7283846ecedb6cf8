import { maintainFor } from '../../shared/lambda/maintain.ts';
import { postgresAdmin } from '../../shared/lambda/postgres/admin.ts';

/** Retention and figures on a schedule; operators' commands when it is asked one. */
export const handler = maintainFor(postgresAdmin)();
