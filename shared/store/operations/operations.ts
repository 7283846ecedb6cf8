import type { MaintenanceStore } from '../../operations/maintain.ts';
import type { Operations } from '../../operations/operations.ts';
import { type Decisions, discard, requeue } from './decide.ts';
import { type Check, examine } from './examine.ts';
import { lanesChecks, schemaCheck } from './findings.ts';
import { type HealthEvidence, healthBy } from './health-checks.ts';
import { type Purges, purge, removeEnded } from './purging.ts';
import { type Repairs, repairing } from './repairs.ts';

/** What an engine brings to operators' commands and to maintenance. */
export interface OperationsEngine extends Pick<Operations, 'show' | 'pause' | 'resume'> {
  readonly evidence: HealthEvidence;
  readonly decisions: Decisions;
  readonly purges: Purges;
  readonly repairs: Repairs;
  /** Completes rows that another program ended in its own way, and forgets workers of long ago; answers how many rows. */
  normalise(): Promise<number>;
  /** The doctor's checks of server and tables. */
  readonly checks: readonly Check[];
}

/** Operators' commands and maintenance. */
export interface EngineOperations {
  readonly operations: Operations;
  readonly maintenance: MaintenanceStore;
}

/** Makes what stands behind the command line and the `maintain` function. */
export function operationsOn(engine: OperationsEngine): EngineOperations {
  const { evidence, decisions, purges } = engine;
  const checks = [schemaCheck(evidence), ...engine.checks, ...lanesChecks(evidence)];
  return {
    operations: {
      status: () => evidence.status(),
      failed: (request) => decisions.listFailed(request),
      show: (request) => engine.show(request),
      requeue: (request) => requeue(decisions, request),
      discard: (request) => discard(decisions, request),
      pause: (request) => engine.pause(request),
      resume: (request) => engine.resume(request),
      purge: (request) => purge(purges, request),
      doctor: () => examine(checks),
      health: (request) => healthBy(evidence, request),
    },
    maintenance: {
      status: () => evidence.status(),
      removeEnded: (request) => removeEnded(purges, request),
      ...repairing(engine.repairs),
      normalise: () => engine.normalise(),
    },
  };
}
