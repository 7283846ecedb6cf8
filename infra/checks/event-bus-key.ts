import { type Arrival, arrivals } from './arrivals.ts';
import type { DeploymentFacts, DestinationFacts, QueueFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { props } from './props.ts';

const { pass, fail, warning, unknown } = answers('event-bus-key');

const ACTIONS = 'kms:DescribeKey, kms:GenerateDataKey and kms:Decrypt';

/**
 * EventBridge acknowledges an event before it uses a key: what it then can't encrypt, or can't put into an encrypted
 * queue, it drops, and nobody is told.
 */
export function checkEventBusKey(facts: DeploymentFacts): Finding[] {
  const buses = facts.destinations.filter(({ transport }) => transport === 'eventbridge');
  // What feeds a queue of a producer's own is its own concern.
  const consumers = arrivals(facts).filter(({ role }) => role === 'consumer');
  return [
    ...buses.map(checkBus),
    ...facts.inboxes.map(({ queue }) => checkQueue(queue, 'ingest')),
    ...consumers.map(({ source, role }) => checkQueue(source.queue, role)),
  ];
}

function checkBus({ name, busEncryption }: DestinationFacts): Finding {
  const subject = `destination ${name}`;
  if (busEncryption === undefined) {
    return unknown(subject, "The event bus's encryption is not known", props.busKey);
  }
  if (busEncryption === 'aws') return pass(subject, 'The event bus is encrypted with the key that AWS owns');
  const { keyId, allowsEvents } = busEncryption;
  if (allowsEvents === undefined) {
    return unknown(
      subject,
      `The event bus is encrypted with ${keyId}, whose policy is not known; it must allow events.amazonaws.com ${ACTIONS}`,
      props.busKey,
    );
  }
  return allowsEvents
    ? pass(subject, `EventBridge may use the event bus's key ${keyId}`)
    : fail(
        subject,
        `The event bus is encrypted with ${keyId}, whose policy does not let EventBridge use it: events are accepted and then dropped`,
        `allow events.amazonaws.com ${ACTIONS} in the key's policy, with aws:SourceArn set to the bus`,
      );
}

function checkQueue(queue: QueueFacts, role: Arrival['role']): Finding {
  const { encryption, fedByEventBridge: fed } = queue;
  if (encryption === undefined) {
    return fed === false
      ? pass(queue.id, 'No EventBridge rule delivers to the queue')
      : unknown(
          queue.id,
          "The queue's encryption is not known: a rule of EventBridge may be unable to deliver to it",
          props.queueFacts(role, 'encryption'),
        );
  }
  if (encryption === 'none' || encryption === 'sqs' || fed === false) {
    return pass(queue.id, 'EventBridge can deliver to the queue');
  }
  return encryption === 'kms-managed' ? managed(queue) : own(queue, role);
}

function managed({ id, fedByEventBridge }: QueueFacts): Finding {
  const message =
    "The queue is encrypted with alias/aws/sqs, whose policy can't be changed: EventBridge and SNS can't deliver to it, and drop what they have";
  const fix =
    'encrypt it with encryption: QueueEncryption.SQS_MANAGED, or with a key of your own that allows events.amazonaws.com';
  return fedByEventBridge === true ? fail(id, message, fix) : warning(id, message, fix);
}

function own({ id, keyAllowsEvents, fedByEventBridge }: QueueFacts, role: Arrival['role']): Finding {
  if (keyAllowsEvents === true) return pass(id, "EventBridge may use the queue's key");
  if (keyAllowsEvents === undefined) {
    return unknown(
      id,
      "The policy of the queue's key is not known; where EventBridge delivers to the queue, it must allow events.amazonaws.com kms:GenerateDataKey and kms:Decrypt",
      props.queueFacts(role, 'keyAllowsEvents'),
    );
  }
  const message =
    "The policy of the queue's key does not let EventBridge use it: a rule can't deliver to the queue";
  const fix = "allow events.amazonaws.com kms:GenerateDataKey and kms:Decrypt in the key's policy";
  return fedByEventBridge === true ? fail(id, message, fix) : warning(id, message, fix);
}
