import { type EngineOperations, operationsOn } from '../operations/operations.ts';
import type { OutboxLeases } from '../operations/outbox-fates.ts';
import { rowsOf } from '../operations/rows.ts';
import { checkSchema } from './check.ts';
import type { Database } from './database.ts';
import { type Names, type PostgresTables, postgresNames } from './names.ts';
import { serverChecks } from './operations/doctor-server.ts';
import { tableChecks } from './operations/doctor-tables.ts';
import { listFailed } from './operations/failed.ts';
import { inboxChanges } from './operations/inbox-fate.ts';
import { pause, resume } from './operations/lanes.ts';
import { normalise, repairsOf } from './operations/maintenance.ts';
import { outboxChanges } from './operations/outbox-fate.ts';
import { purgesOf } from './operations/purge.ts';
import type { OperationsSource } from './operations/session.ts';
import { showMessage } from './operations/show.ts';
import { readStatus } from './operations/status.ts';
import { recordCycle as recordCycleSql, relayAges } from './sql/operations-maintain.ts';

/** What operations on PostgreSQL need. */
export interface PostgresOperationsOptions {
  /** A `pg.Pool`, or what `connect` of this folder answers. */
  readonly source: OperationsSource;
  readonly tables?: PostgresTables;
  /** The outbox store over the same database: it gives the buckets' leases. */
  readonly leases: OutboxLeases;
}

/** Makes what stands behind the command line and the `maintain` function, on PostgreSQL. */
export function postgresOperations({ source, tables, leases }: PostgresOperationsOptions): EngineOperations {
  const names = postgresNames(tables);
  const context = { source, names, leases };
  return operationsOn({
    evidence: {
      checkSchema: () => checkSchema(source, names),
      status: () => readStatus(source, names),
      relayAges: async () => rowsOf(await source.query(relayAges(names))),
    },
    decisions: {
      listFailed: (request) => listFailed(source, names, request),
      outbox: outboxChanges(context),
      inbox: inboxChanges(context),
    },
    show: (request) => showMessage(source, names, request),
    pause: (request) => pause(source, names, request),
    resume: (request) => resume(source, names, request),
    purges: purgesOf(source, names),
    repairs: repairsOf(context),
    normalise: () => normalise(context),
    checks: [...serverChecks(source), ...tableChecks(source, names)],
  });
}

/**
 * Notes that a worker has ended a cycle well; `health` and `doctor` look at that. Writes at most once in ten seconds,
 * whoever calls it how often.
 *
 * @param worker what to call it: a relay's name begins with `outbox-relay`; instances of one function share a name
 */
export async function recordCycle(database: Database, names: Names, worker: string): Promise<void> {
  await database.query(recordCycleSql(names), [worker]);
}
