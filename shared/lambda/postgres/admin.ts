import { checkSchema, needs } from '../../store/postgres/check.ts';
import { connect } from '../../store/postgres/connections.ts';
import { migrate } from '../../store/postgres/migrate.ts';
import { postgresNames } from '../../store/postgres/names.ts';
import { postgresOperations } from '../../store/postgres/operations.ts';
import { postgresOutboxStore } from '../../store/postgres/outbox-store.ts';
import type { AdminEngine } from '../admin.ts';
import { connectionSettings } from '../config-database.ts';

/** PostgreSQL as `maintain` and `migrate` see it. */
export const postgresAdmin: AdminEngine = {
  name: 'postgres-admin',
  connect(settings, pool) {
    const database = connect(connectionSettings(settings.database, 'postgres'), pool);
    const names = postgresNames(settings.tables);
    return {
      ...postgresOperations({
        source: database,
        tables: settings.tables,
        leases: postgresOutboxStore(database, names),
      }),
      migrate: (options) => migrate(database, names, options),
      async check() {
        await checkSchema(database, names, needs.maintain);
      },
      end: () => database.end(),
    };
  },
};
