import { ConfigurationError } from '../../message/errors.ts';
import { checkSchema, needs } from '../../store/postgres/check.ts';
import type { PostgresSettings } from '../../store/postgres/connection-settings.ts';
import { connect } from '../../store/postgres/connections.ts';
import { postgresInboxStore } from '../../store/postgres/inbox-store.ts';
import { postgresNames } from '../../store/postgres/names.ts';
import { recordCycle } from '../../store/postgres/operations.ts';
import { postgresOutboxStore } from '../../store/postgres/outbox-store.ts';
import { postgresOutbox } from '../../store/postgres/producer.ts';
import type { DatabaseSettings } from '../config-database.ts';
import type { Engine } from '../engine.ts';
import { type PostgresTx, transactionClient } from './transaction-client.ts';

/** PostgreSQL as the Lambda layer sees it. */
export const postgres: Engine<PostgresTx> = {
  name: 'postgres',
  connect(settings, pool) {
    const database = connect(connectionSettings(settings.database), pool);
    const names = postgresNames(settings.tables);
    return {
      outbox: postgresOutboxStore(database, names),
      inbox: postgresInboxStore(database, names),
      producer: (options) => postgresOutbox({ ...settings.tables, ...options }),
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
export function connectionSettings(database: DatabaseSettings): PostgresSettings {
  if ('url' in database) return database;
  const { engine, ...host } = database;
  if (engine === 'postgres') return host;
  throw new ConfigurationError(
    `RELAYBOX_DATABASE.engine is ${engine}, but this function was built for postgres`,
  );
}
