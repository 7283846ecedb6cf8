import { checkSchema, needs } from '../../store/sqlserver/check.ts';
import { connect } from '../../store/sqlserver/connections.ts';
import { sqlServerInboxStore } from '../../store/sqlserver/inbox-store.ts';
import { sqlServerNames } from '../../store/sqlserver/names.ts';
import { recordCycle } from '../../store/sqlserver/operations.ts';
import { sqlServerOutboxStore } from '../../store/sqlserver/outbox-store.ts';
import { sqlServerOutbox } from '../../store/sqlserver/producer.ts';
import { connectionSettings } from '../config-database.ts';
import type { Engine } from '../engine.ts';
import { type SqlServerTx, transactionClient } from './transaction-client.ts';

/** SQL Server as the Lambda layer sees it. */
export const sqlServer: Engine<SqlServerTx> = {
  name: 'sqlserver',
  connect(settings, pool) {
    const database = connect(connectionSettings(settings.database, 'sqlserver'), pool);
    const names = sqlServerNames(settings.tables);
    return {
      outbox: sqlServerOutboxStore(database, names),
      inbox: sqlServerInboxStore(database, names),
      producer: (options) => sqlServerOutbox({ ...settings.tables, ...options }),
      begin: (limits) => database.begin(limits),
      async check(worker) {
        await checkSchema(database, names, needs[worker]);
      },
      recordCycle: (worker) => recordCycle(database, names, worker),
      end: () => database.end(),
    };
  },
  lazy: transactionClient,
};
