import type { MaintenanceStore } from '../../operations/maintain.ts';
import type { Operations } from '../../operations/operations.ts';
import { healthBy } from '../operations/health-checks.ts';
import type { OutboxLeases } from '../operations/outbox-fates.ts';
import { rowsOf } from '../operations/rows.ts';
import { checkSchema } from './check.ts';
import type { Database } from './database.ts';
import { retried } from './inbox/retry.ts';
import { type Names, type SqlServerTables, sqlServerNames } from './names.ts';
import { examine } from './operations/doctor.ts';
import { listFailed } from './operations/failed.ts';
import { discard, requeue } from './operations/fate.ts';
import { pause, resume } from './operations/lanes.ts';
import { sqlServerMaintenance } from './operations/maintenance.ts';
import { purge } from './operations/purge.ts';
import type { OperationsSource } from './operations/session.ts';
import { showMessage } from './operations/show.ts';
import { readStatus } from './operations/status.ts';
import { recordCycle as recordCycleSql, relayAges } from './sql/operations-maintain.ts';

/** What operations on SQL Server need. */
export interface SqlServerOperationsOptions {
  /** What `connect` of this folder answers. */
  readonly source: OperationsSource;
  readonly tables?: SqlServerTables;
  /** The outbox store over the same database: it gives the buckets' leases. */
  readonly leases: OutboxLeases;
}

/** Operators' commands and maintenance, on SQL Server. */
export interface SqlServerOperations {
  readonly operations: Operations;
  readonly maintenance: MaintenanceStore;
}

/** Makes what stands behind the command line and the `maintain` function. */
export function sqlServerOperations(options: SqlServerOperationsOptions): SqlServerOperations {
  const { source, leases } = options;
  const names = sqlServerNames(options.tables);
  const outbox = { source, names, leases };
  const evidence = {
    checkSchema: () => checkSchema(source, names),
    status: () => readStatus(source, names),
    relayAges: async () => rowsOf(await source.query(relayAges(names))),
  };
  return {
    operations: {
      status: () => readStatus(source, names),
      failed: (request) => listFailed(source, names, request),
      show: (request) => showMessage(source, names, request),
      requeue: (request) => requeue(outbox, request),
      discard: (request) => discard(outbox, request),
      pause: (request) => retried(() => pause(source, names, request)),
      resume: (request) => retried(() => resume(source, names, request)),
      purge: (request) => purge(source, names, request),
      doctor: () => examine({ source, names }),
      health: (request) => healthBy(evidence, request),
    },
    maintenance: sqlServerMaintenance(outbox),
  };
}

/**
 * Notes that a worker has ended a cycle well; `health` and `doctor` look at that. Writes at most once in ten seconds,
 * whoever calls it how often.
 *
 * @param worker what to call it: a relay's name begins with `outbox-relay`; instances of one function share a name
 */
export async function recordCycle(database: Database, names: Names, worker: string): Promise<void> {
  await retried(() => database.query(recordCycleSql(names), [worker]));
}
