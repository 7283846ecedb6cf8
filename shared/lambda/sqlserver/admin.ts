import { checkSchema, needs } from '../../store/sqlserver/check.ts';
import { connect } from '../../store/sqlserver/connections.ts';
import { migrate } from '../../store/sqlserver/migrate.ts';
import { sqlServerNames } from '../../store/sqlserver/names.ts';
import { sqlServerOperations } from '../../store/sqlserver/operations.ts';
import { sqlServerOutboxStore } from '../../store/sqlserver/outbox-store.ts';
import type { AdminEngine } from '../admin.ts';
import { connectionSettings } from '../config-database.ts';

/** SQL Server as `maintain` and `migrate` see it. */
export const sqlServerAdmin: AdminEngine = {
  name: 'sqlserver-admin',
  connect(settings, pool) {
    const database = connect(connectionSettings(settings.database, 'sqlserver'), pool);
    const names = sqlServerNames(settings.tables);
    return {
      ...sqlServerOperations({
        source: database,
        tables: settings.tables,
        leases: sqlServerOutboxStore(database, names),
      }),
      migrate: (options) => migrate(database, names, options),
      async check() {
        await checkSchema(database, names, needs.maintain);
      },
      end: () => database.end(),
    };
  },
};
