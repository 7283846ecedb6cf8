import { Exclusive } from '../outbox/exclusive.ts';
import { outboxStore } from '../outbox/store.ts';
import type { OutboxStore } from '../outbox-store.ts';
import type { Database } from './database.ts';
import { type Names, type SqlServerTables, sqlServerNames } from './names.ts';
import { breakerOf } from './outbox/breaker.ts';
import { outboxLanes } from './outbox/lanes.ts';
import { outboxReads } from './outbox/read.ts';
import { outboxSettles } from './outbox/settle.ts';

/** The outbox store on SQL Server. Make one per process: reads and settles of one lease know of each other through it. */
export function sqlServerOutboxStore(database: Database, tables: SqlServerTables | Names = {}): OutboxStore {
  const names = 'placeholders' in tables ? tables : sqlServerNames(tables);
  const exclusive = new Exclusive();
  return outboxStore(
    {
      lanes: outboxLanes(database, names),
      reads: outboxReads(database, names, exclusive),
      settles: outboxSettles(database, names),
      breaker: breakerOf(database, names),
    },
    exclusive,
  );
}
