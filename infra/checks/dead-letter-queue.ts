import type { DeploymentFacts, QueueFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { props } from './props.ts';

const { pass, fail, unknown } = answers('dead-letter-queue');

/** SQS moves a message only to a dead-letter queue of its own kind; a redrive policy to another is refused at deploy. */
export function checkDeadLetterQueue(facts: DeploymentFacts): Finding[] {
  const received = facts.eventSources.filter(({ wake }) => !wake).map(({ queue }) => queue);
  const seen = new Set(received.map(({ id }) => id));
  // What stands behind a destination's queue is its consumer's concern: only what is known to be wrong is said.
  const sent = facts.destinations.flatMap(({ queue }) => (queue && !seen.has(queue.id) ? [queue] : []));
  return [...received.map(check), ...sent.map(check).filter(({ answer }) => answer === 'fail')];
}

function check(queue: QueueFacts): Finding {
  const dead = queue.deadLetterQueue;
  if (dead === 'none') return pass(queue.id, 'The queue has no dead-letter queue');
  if (dead?.fifo === undefined || queue.fifo === undefined) {
    return unknown(
      queue.id,
      'Whether the queue and its dead-letter queue are both FIFO, or both standard, is not known',
      props.inboxQueueFacts('fifo, deadLetterQueue: { fifo }'),
    );
  }
  const [kind, other] = [queue.fifo, dead.fifo].map((fifo) => (fifo ? 'FIFO' : 'standard'));
  return queue.fifo === dead.fifo
    ? pass(queue.id, `The queue and ${dead.id} are both ${kind}`)
    : fail(
        queue.id,
        `The queue is ${kind}, but its dead-letter queue ${dead.id} is ${other}: SQS refuses it`,
        `give it a ${kind} dead-letter queue${queue.fifo ? ' (fifo: true)' : ''}`,
      );
}
