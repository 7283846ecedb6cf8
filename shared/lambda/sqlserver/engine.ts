import { ConfigurationError } from '../../message/errors.ts';
import { checkSchema, needs } from '../../store/sqlserver/check.ts';
import type { SqlServerSettings } from '../../store/sqlserver/connection-settings.ts';
import { connect } from '../../store/sqlserver/connections.ts';
import { sqlServerInboxStore } from '../../store/sqlserver/inbox-store.ts';
import { sqlServerNames } from '../../store/sqlserver/names.ts';
import { recordCycle } from '../../store/sqlserver/operations.ts';
import { sqlServerOutboxStore } from '../../store/sqlserver/outbox-store.ts';
import { sqlServerOutbox } from '../../store/sqlserver/producer.ts';
import type { DatabaseSettings } from '../config-database.ts';
import type { Engine } from '../engine.ts';
import { type SqlServerTx, transactionClient } from './transaction-client.ts';

/** SQL Server as the Lambda layer sees it. */
export const sqlServer: Engine<SqlServerTx> = {
  name: 'sqlserver',
  connect(settings, pool) {
    const database = connect(connectionSettings(settings.database), pool);
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

/** The settings as the driver's connections take them. */
export function connectionSettings(database: DatabaseSettings): SqlServerSettings {
  if ('url' in database) return database;
  const { engine, ...host } = database;
  if (engine === 'sqlserver') return host;
  throw new ConfigurationError(
    `RELAYBOX_DATABASE.engine is ${engine}, but this function was built for sqlserver`,
  );
}
