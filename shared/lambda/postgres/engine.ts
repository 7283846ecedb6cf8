import { ConfigurationError } from '../../message/errors.ts';
import type { PostgresSettings } from '../../store/postgres/connection-settings.ts';
import { connect } from '../../store/postgres/connections.ts';
import { postgresInboxStore } from '../../store/postgres/inbox-store.ts';
import { postgresNames } from '../../store/postgres/names.ts';
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
      outbox: undefined as never,
      inbox: postgresInboxStore(database, names),
      producer: (options) => postgresOutbox({ ...settings.tables, ...options }),
      begin: (limits) => database.begin(limits),
      check: async () => undefined,
      end: () => database.end(),
    };
  },
  lazy: transactionClient,
};

function connectionSettings(database: DatabaseSettings): PostgresSettings {
  if ('url' in database) return database;
  const { engine, ...host } = database;
  if (engine !== 'postgres') {
    throw new ConfigurationError(
      `RELAYBOX_DATABASE.engine is ${engine}, but this function was built for postgres`,
    );
  }
  return host;
}
