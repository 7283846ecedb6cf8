import { ConfigurationError } from '../message/errors.ts';
import type { DestinationLimits, DestinationTable } from '../message/limits.ts';
import type { ProducerOptions } from '../outbox/producer.ts';
import { invocationTraceparent } from './traceparent.ts';
import { queueWaker } from './wake.ts';

/** What a function that produces is given: limits of the destinations, so that `add` refuses what could never arrive. */
export const LIMITS_VARIABLE = 'RELAYBOX_DESTINATION_LIMITS';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A producer's options as its environment has them: `RELAYBOX_WAKE_QUEUE_URL` and `RELAYBOX_DESTINATION_LIMITS`, both
 * of which `grantProduce` sets. Without them nothing is woken, and the limits that hold on every transport are kept. On
 * Lambda also which trace it is a part of.
 */
export function producerFromEnvironment(
  env: Environment = process.env,
): Pick<ProducerOptions, 'wake' | 'destinations' | 'traceparent'> {
  const url = env['RELAYBOX_WAKE_QUEUE_URL'];
  const limits = env[LIMITS_VARIABLE];
  const waker = url ? queueWaker(url, { endpoint: env['AWS_ENDPOINT_URL_SQS'] }) : undefined;
  return {
    ...(waker && { wake: () => waker.wake() }),
    ...(limits && { destinations: readLimits(limits) }),
    traceparent: () => invocationTraceparent(env),
  };
}

function readLimits(text: string): DestinationTable {
  const problem = `${LIMITS_VARIABLE} must be JSON such as {"orders":{"type":"sqs"},"events":{"type":"eventbridge"}}`;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new ConfigurationError(problem, { cause: error });
  }
  if (typeof parsed !== 'object' || parsed === null || !Object.values(parsed).every(isLimits)) {
    throw new ConfigurationError(problem);
  }
  return parsed as DestinationTable;
}

function isLimits(value: unknown): value is DestinationLimits {
  if (typeof value !== 'object' || value === null) return false;
  const { type, maxBytes } = value as { type?: unknown; maxBytes?: unknown };
  const sized = maxBytes === undefined || (typeof maxBytes === 'number' && maxBytes > 0);
  return (type === 'sqs' || type === 'eventbridge') && sized;
}
