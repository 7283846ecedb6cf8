import { type Arrival, arrivals } from './arrivals.ts';
import type { DeploymentFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';

const { pass, fail, warning, unknown } = answers('batch-failures');

const FIX =
  'set reportBatchItemFailures: true on its SqsEventSource, or let relaybox.addConsumer make the event source';

/** Lambda reads which records of a batch failed only where it is told to; elsewhere it deletes them with the others. */
export function checkBatchFailures(facts: DeploymentFacts): Finding[] {
  return arrivals(facts).map(check);
}

function check({ source, role }: Arrival): Finding {
  const { function: subject, queue, reportsFailures } = source;
  if (reportsFailures === true) return pass(subject, `What fails of a batch of ${queue.id} comes again`);
  if (reportsFailures === undefined) {
    return unknown(
      subject,
      `Whether the event source of ${queue.id} asks which records failed is not known`,
      'reportBatchItemFailures on an event source that this app defines',
    );
  }
  const message = `The event source of ${queue.id} does not ask which records failed: those that an sqsConsumer or createIngest answers are deleted with the others, and lost`;
  return role === 'producer'
    ? warning(subject, `${message}. A function that throws for them loses nothing`, FIX)
    : fail(subject, message, FIX);
}
