import { type Arrival, arrivals } from './arrivals.ts';
import type { DeploymentFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { props } from './props.ts';

const { pass, fail, warning, unknown } = answers('receive-count');

/** A throttled or failed delivery counts as a receive although no code ran: AWS recommends five at least. */
const LEAST = 5;

/** Too low a count sends messages to the dead-letter queue in a burst, though nothing is wrong with them. */
export function checkReceiveCount(facts: DeploymentFacts): Finding[] {
  return arrivals(facts).map(check);
}

function check({ source: { queue }, role }: Arrival): Finding {
  const dead = queue.deadLetterQueue;
  if (dead === 'none') {
    return warning(
      queue.id,
      'The queue has no dead-letter queue: a record that cannot be stored comes back until the queue drops it unseen',
      `give it one, with maxReceiveCount: ${LEAST} or more`,
    );
  }
  const receives = dead?.maxReceiveCount;
  if (receives === undefined) {
    return unknown(
      queue.id,
      `After how many receives a message goes to the dead-letter queue is not known; it must be ${LEAST} or more`,
      props.queueFacts(role, 'deadLetterQueue: { maxReceiveCount }'),
    );
  }
  return receives < LEAST
    ? fail(
        queue.id,
        `maxReceiveCount is ${receives}, less than ${LEAST}: deliveries that Lambda throttles count as receives, so a burst puts good messages into ${dead?.id}`,
        `set maxReceiveCount: ${LEAST} or more`,
      )
    : pass(queue.id, `maxReceiveCount is ${receives}, at least ${LEAST}`);
}
