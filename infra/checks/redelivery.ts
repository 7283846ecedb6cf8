import type { QueueFacts } from './facts.ts';
import { duration } from './words.ts';

/** The longest that a copy of a message can be on its way, or what has to be known for that. */
export type Redelivery =
  | { readonly known: true; readonly seconds: number; readonly way: string }
  | { readonly known: false; readonly what: string; readonly names: string };

/**
 * The longest way a copy can take: the queue, then its dead-letter queue, then, moved back by a person, the queue once
 * more, since a redrive makes a new message with a retention of its own.
 */
export function longestRedelivery(queue: QueueFacts): Redelivery {
  const { retentionSeconds: inQueue, deadLetterQueue: dead } = queue;
  if (inQueue === undefined || dead === undefined) {
    return {
      known: false,
      what: `What ${queue.id} retains, or whether it has a dead-letter queue, is not known`,
      names: 'retention, deadLetterQueue | noDeadLetterQueue',
    };
  }
  if (dead === 'none') {
    return {
      known: true,
      seconds: inQueue,
      way: `the ${duration(inQueue)} that a copy can stay in ${queue.id}`,
    };
  }
  const { id, retentionSeconds: inDeadLetterQueue } = dead;
  if (inDeadLetterQueue === undefined) {
    return {
      known: false,
      what: `What the dead-letter queue ${id} retains is not known`,
      names: 'deadLetterQueue: { retention }',
    };
  }
  const seconds = inQueue + inDeadLetterQueue + inQueue;
  const way = `${duration(inQueue)} in ${queue.id} + ${duration(inDeadLetterQueue)} in ${id} + ${duration(inQueue)} in the queue again after a redrive = ${duration(seconds)}`;
  return { known: true, seconds, way };
}
