import { checkSchema, needs } from '../../store/postgres/check.ts';
import { connect } from '../../store/postgres/connections.ts';
import { postgresInboxStore } from '../../store/postgres/inbox-store.ts';
import { postgresNames } from '../../store/postgres/names.ts';
import { recordCycle } from '../../store/postgres/operations.ts';
import { postgresOutboxStore } from '../../store/postgres/outbox-store.ts';
import { postgresOutbox } from '../../store/postgres/producer.ts';
import { connectionSettings } from '../config-database.ts';
import type { Engine } from '../engine.ts';
import { type PostgresTx, transactionClient } from './transaction-client.ts';

/** PostgreSQL as the Lambda layer sees it. */
export const postgres: Engine<PostgresTx> = {
  name: 'postgres',
  connect(settings, pool) {
    const database = connect(connectionSettings(settings.database, 'postgres'), pool);
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
