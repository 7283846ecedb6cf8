import { type Arrival, arrivals } from './arrivals.ts';
import type { ConsumerFacts, DeploymentFacts, HandlerFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';

const { pass, fail, warning } = answers('handlers');

/**
 * Two functions for one type, or on one queue, would share its messages at random, each handling about half of them. Two direct consumers of
 * one name take each other's copies for duplicates. A queue of messages before a function that takes wakes is read by nobody.
 */
export function checkHandlers(facts: DeploymentFacts): Finding[] {
  const types = grouped(facts.handlers, ({ consumer, messageType }) =>
    JSON.stringify([consumer, messageType]),
  );
  const names = grouped(facts.consumers, ({ consumer }) => consumer);
  const queues = grouped(arrivals(facts), ({ source }) => source.queue.id);
  return [
    ...types.map(check),
    ...names.map(checkConsumers),
    ...queues.map(checkTakers),
    ...arrivals(facts).flatMap(checkWorker),
  ];
}

/** A relay or a handler of `addHandler` takes wakes; its messages come from the database. */
function checkWorker({ source, role }: Arrival): Finding[] {
  if (role !== 'relay' && role !== 'handler') return [];
  const { queue, function: fn } = source;
  return [
    fail(
      `${queue.id} before ${fn}`,
      'A relay or a handler takes wakes from its own queue, and its messages from the database: those of this queue would come back until they are dead',
      'take the event source away, and give the queue to an inbox, which stores them for the handlers; or handle them with sqsConsumer in a function of addConsumer',
    ),
  ];
}

/** SQS gives a message to one receiver. */
function checkTakers(takers: readonly Arrival[]): Finding {
  const { queue } = (takers[0] as Arrival).source;
  const functions = takers.map(({ source }) => source.function).join(', ');
  return takers.length === 1
    ? pass(queue.id, `Its messages are taken by ${functions}`)
    : fail(
        queue.id,
        `${takers.length} functions take messages from this queue: ${functions}. Each message comes to one of them only`,
        'give each a queue of its own, fed by the same rule or topic',
      );
}

function grouped<T>(all: readonly T[], keyOf: (each: T) => string): T[][] {
  return Object.values(Object.groupBy(all, keyOf)).flatMap((group) => (group ? [group] : []));
}

function checkConsumers(consumers: readonly ConsumerFacts[]): Finding {
  const { consumer } = consumers[0] as ConsumerFacts;
  const name = consumer === '' ? 'the default consumer' : `consumer ${consumer}`;
  const functions = consumers.map((each) => each.function).join(', ');
  return consumers.length === 1
    ? pass(name, `${functions} consumes under this name`)
    : warning(
        name,
        `${consumers.length} functions consume straight from queues under this name: ${functions}. Of a message that two of them get, only the first does its work`,
        'give each a consumer of its own in addConsumer, or accept it where no message goes to two of them, or their code names them',
      );
}

function check(handlers: readonly HandlerFacts[]): Finding {
  const { messageType, consumer } = handlers[0] as HandlerFacts;
  const subject = consumer === '' ? messageType : `${messageType} for ${consumer}`;
  return handlers.length === 1
    ? pass(subject, `Handled by ${handlers[0]?.function}`)
    : fail(
        subject,
        `${handlers.length} functions handle this type: ${handlers.map((each) => each.function).join(', ')}. Each would get a part of its messages`,
        'keep one of them, or give each a consumer of its own with an inbox of its own',
      );
}
