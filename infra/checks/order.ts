import type { DeploymentFacts, DestinationFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { props } from './props.ts';

const { pass, warning, unknown } = answers('order');

/** Messages of a key are published in order on every transport, but only FIFO hands them out in that order. */
export function checkOrder(facts: DeploymentFacts): Finding[] {
  return facts.destinations.map(check);
}

function check({ name, transport, keyed }: DestinationFacts): Finding {
  const subject = `destination ${name}`;
  if (transport === 'sqs-fifo') return pass(subject, 'A FIFO queue keeps the order of a key');
  if (keyed === false) return pass(subject, 'Its messages carry no partition keys');
  if (transport === undefined) {
    return unknown(
      subject,
      'Whether the queue is FIFO, and so keeps the order of a key, is not known',
      props.destinationQueueFacts('fifo'),
    );
  }
  const it = transport === 'eventbridge' ? 'An event bus' : 'A standard queue';
  if (keyed === undefined) {
    return unknown(
      subject,
      `${it} keeps no order; whether its messages carry partition keys is not known`,
      props.keyed(transport),
    );
  }
  return warning(
    subject,
    `Its messages carry partition keys, but ${it.charAt(0).toLowerCase()}${it.slice(1)} keeps no order: they are published in order and may arrive in another`,
    'send them to a FIFO queue, or let their handlers work in any order',
  );
}
