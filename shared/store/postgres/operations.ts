import type { MaintenanceStore } from '../../operations/maintain.ts';
import type { Operations } from '../../operations/operations.ts';
import type { OutboxLeases } from '../operations/outbox-fates.ts';
import type { Database } from './database.ts';
import { type Names, type PostgresTables, postgresNames } from './names.ts';
import { examine } from './operations/doctor.ts';
import { listFailed } from './operations/failed.ts';
import { discard, requeue } from './operations/fate.ts';
import { health } from './operations/health.ts';
import { pause, resume } from './operations/lanes.ts';
import { postgresMaintenance } from './operations/maintenance.ts';
import { purge } from './operations/purge.ts';
import type { OperationsSource } from './operations/session.ts';
import { showMessage } from './operations/show.ts';
import { readStatus } from './operations/status.ts';
import { recordCycle as recordCycleSql } from './sql/operations-maintain.ts';

/** What operations on PostgreSQL need. */
export interface PostgresOperationsOptions {
  /** A `pg.Pool`, or what `connect` of this folder answers. */
  readonly source: OperationsSource;
  readonly tables?: PostgresTables;
  /** The outbox store over the same database: it gives the buckets' leases. */
  readonly leases: OutboxLeases;
}

/** Operators' commands and maintenance, on PostgreSQL. */
export interface PostgresOperations {
  readonly operations: Operations;
  readonly maintenance: MaintenanceStore;
}

/** Makes what stands behind the command line and the `maintain` function. */
export function postgresOperations(options: PostgresOperationsOptions): PostgresOperations {
  const { source, leases } = options;
  const names = postgresNames(options.tables);
  const outbox = { source, names, leases };
  const doctor = { source, names };
  return {
    operations: {
      status: () => readStatus(source, names),
      failed: (request) => listFailed(source, names, request),
      show: (request) => showMessage(source, names, request),
      requeue: (request) => requeue(outbox, request),
      discard: (request) => discard(outbox, request),
      pause: (request) => pause(source, names, request),
      resume: (request) => resume(source, names, request),
      purge: (request) => purge(source, names, request),
      doctor: () => examine(doctor),
      health: (request) => health(doctor, request),
    },
    maintenance: postgresMaintenance(outbox),
  };
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
