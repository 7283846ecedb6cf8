import { accept } from './accept.ts';
import { checkAutoPause } from './auto-pause.ts';
import { checkBatchFailures } from './batch-failures.ts';
import { checkConnections } from './connections.ts';
import { checkDeadLetterQueue } from './dead-letter-queue.ts';
import { checkEgress } from './egress.ts';
import { checkEventBusKey } from './event-bus-key.ts';
import type { DeploymentFacts } from './facts.ts';
import type { AcceptedFinding, CheckName, Finding } from './finding.ts';
import { checkHandlers } from './handlers.ts';
import { checkInboxRetention } from './inbox-retention.ts';
import { checkLease } from './lease.ts';
import { checkOrder } from './order.ts';
import { checkReceiptRetention } from './receipt-retention.ts';
import { checkReceiveCount } from './receive-count.ts';
import { checkReservedConcurrency } from './reserved-concurrency.ts';
import { checkSweepRetries } from './sweep-retries.ts';
import { checkVisibility } from './visibility.ts';

export type * from './facts.ts';
export { type AcceptedFinding, type Answer, type CheckName, checkNames, type Finding } from './finding.ts';
export { entry, report, summary } from './report.ts';

/** Every check by its name, in the order of the report. */
const CHECKS: Readonly<Record<CheckName, (facts: DeploymentFacts) => Finding[]>> = {
  lease: checkLease,
  visibility: checkVisibility,
  'inbox-retention': checkInboxRetention,
  'receipt-retention': checkReceiptRetention,
  connections: checkConnections,
  'receive-count': checkReceiveCount,
  'batch-failures': checkBatchFailures,
  'reserved-concurrency': checkReservedConcurrency,
  egress: checkEgress,
  'dead-letter-queue': checkDeadLetterQueue,
  handlers: checkHandlers,
  'event-bus-key': checkEventBusKey,
  order: checkOrder,
  'sweep-retries': checkSweepRetries,
  'auto-pause': checkAutoPause,
};

/** Checks a deployment before it is one. The synth fails where one of the findings is a `fail`. */
export function checkDeployment(
  facts: DeploymentFacts,
  accepted: readonly AcceptedFinding[] = [],
): Finding[] {
  return accept(
    Object.values(CHECKS).flatMap((check) => check(facts)),
    accepted,
  );
}
