import { outboxStore } from '../outbox/store.ts';
import type { OutboxStore } from '../outbox-store.ts';
import type { Database } from './database.ts';
import { type Names, type PostgresTables, postgresNames } from './names.ts';
import { breakerOf } from './outbox/breaker.ts';
import { outboxLanes } from './outbox/lanes.ts';
import { outboxReads } from './outbox/read.ts';
import { outboxSettles } from './outbox/settle.ts';

/** The outbox store on PostgreSQL. Make one per process: reads and settles of one lease know of each other through it. */
export function postgresOutboxStore(database: Database, tables: PostgresTables | Names = {}): OutboxStore {
  const names = 'placeholders' in tables ? tables : postgresNames(tables);
  return outboxStore({
    lanes: outboxLanes(database, names),
    reads: outboxReads(database, names),
    settles: outboxSettles(database, names),
    breaker: breakerOf(database, names),
  });
}
