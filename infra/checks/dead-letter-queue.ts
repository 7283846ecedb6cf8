import { type Arrival, arrivals } from './arrivals.ts';
import type { DeadLetterQueueFacts, DeploymentFacts, QueueFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { props } from './props.ts';
import { duration, durationCode } from './words.ts';

const { pass, fail, warning, unknown } = answers('dead-letter-queue');

/** SQS's longest retention. */
const LONGEST = 14 * 86_400;

/**
 * SQS moves a message only to a dead-letter queue of its own kind; a redrive policy to another is refused at deploy. And a
 * message of a standard queue keeps its age when it is moved: it must have time left in the dead-letter queue, or it is
 * gone before anybody looked.
 */
export function checkDeadLetterQueue(facts: DeploymentFacts): Finding[] {
  const received = arrivals(facts);
  const seen = new Set(received.map(({ source }) => source.queue.id));
  // What stands behind a destination's queue is its consumer's concern: only what is known to be wrong is said.
  const sent = facts.destinations.flatMap(({ queue }) => (queue && !seen.has(queue.id) ? [queue] : []));
  return [
    ...received.map(({ source, role }) => check(source.queue, role)),
    ...sent.map((queue) => check(queue, undefined)).filter(({ answer }) => answer === 'fail'),
  ];
}

function check(queue: QueueFacts, role: Arrival['role']): Finding {
  const dead = queue.deadLetterQueue;
  if (dead === 'none') return pass(queue.id, 'The queue has no dead-letter queue');
  if (dead?.fifo === undefined || queue.fifo === undefined) {
    return unknown(
      queue.id,
      'Whether the queue and its dead-letter queue are both FIFO, or both standard, is not known',
      props.queueFacts(role, 'fifo, deadLetterQueue: { fifo }'),
    );
  }
  const [kind, other] = [queue.fifo, dead.fifo].map((fifo) => (fifo ? 'FIFO' : 'standard'));
  return queue.fifo === dead.fifo
    ? sameKind(queue, dead, `The queue and ${dead.id} are both ${kind}`)
    : fail(
        queue.id,
        `The queue is ${kind}, but its dead-letter queue ${dead.id} is ${other}: SQS refuses it`,
        `give it a ${kind} dead-letter queue${queue.fifo ? ' (fifo: true)' : ''}`,
      );
}

/** FIFO queues count from the move, so that only standard ones lose time. What isn't known is asked for by the retention checks. */
function sameKind(queue: QueueFacts, dead: DeadLetterQueueFacts, said: string): Finding {
  const [inQueue, inDead] = [queue.retentionSeconds, dead.retentionSeconds];
  if (queue.fifo || inQueue === undefined || inDead === undefined || inDead > inQueue)
    return pass(queue.id, said);
  return warning(
    queue.id,
    `${dead.id} retains ${duration(inDead)} and the queue ${duration(inQueue)}, both counted from the first send: what goes there late is gone before anybody looks`,
    inQueue < LONGEST
      ? `set retentionPeriod: ${durationCode(LONGEST)} on the dead-letter queue`
      : `set retentionPeriod: ${durationCode(LONGEST)} on the dead-letter queue, and half of it on the queue`,
  );
}
