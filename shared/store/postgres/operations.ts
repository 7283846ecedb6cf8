import type { MaintenanceStore } from '../../operations/maintain.ts';
import type { Operations } from '../../operations/operations.ts';
import { type Decisions, discard, requeue } from '../operations/decide.ts';
import { examineBy } from '../operations/examine.ts';
import { lanesChecks, schemaCheck } from '../operations/findings.ts';
import { type HealthEvidence, healthBy } from '../operations/health-checks.ts';
import type { OutboxLeases } from '../operations/outbox-fates.ts';
import { purge } from '../operations/purging.ts';
import { checkSchema } from './check.ts';
import type { Database } from './database.ts';
import { type Names, type PostgresTables, postgresNames } from './names.ts';
import { serverChecks } from './operations/doctor-server.ts';
import { tableChecks } from './operations/doctor-tables.ts';
import { listFailed } from './operations/failed.ts';
import { inboxChanges } from './operations/inbox-fate.ts';
import { pause, resume } from './operations/lanes.ts';
import { postgresMaintenance } from './operations/maintenance.ts';
import { outboxChanges } from './operations/outbox-fate.ts';
import { purgesOf } from './operations/purge.ts';
import { type OperationsSource, rowsOf } from './operations/session.ts';
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

/** Operators' commands and maintenance, on PostgreSQL. */
export interface PostgresOperations {
  readonly operations: Operations;
  readonly maintenance: MaintenanceStore;
}

/** Makes what stands behind the command line and the `maintain` function. */
export function postgresOperations(options: PostgresOperationsOptions): PostgresOperations {
  const { source, leases } = options;
  const names = postgresNames(options.tables);
  const evidence: HealthEvidence = {
    checkSchema: () => checkSchema(source, names),
    status: () => readStatus(source, names),
    relayAges: async () => rowsOf(await source.query(relayAges(names))),
  };
  const decisions: Decisions = {
    listFailed: (request) => listFailed(source, names, request),
    outbox: outboxChanges({ source, names, leases }),
    inbox: inboxChanges({ source, names }),
  };
  const checks = [schemaCheck(evidence), ...serverChecks, ...tableChecks, ...lanesChecks(evidence)];
  const purges = purgesOf(source, names);
  return {
    operations: {
      status: evidence.status,
      failed: decisions.listFailed,
      show: (request) => showMessage(source, names, request),
      requeue: (request) => requeue(decisions, request),
      discard: (request) => discard(decisions, request),
      pause: (request) => pause(source, names, request),
      resume: (request) => resume(source, names, request),
      purge: (request) => purge(purges, request),
      doctor: () => examineBy(checks, { source, names }),
      health: (request) => healthBy(evidence, request),
    },
    maintenance: postgresMaintenance({ source, names, leases }, purges),
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
