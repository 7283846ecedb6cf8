import type { DeploymentFacts, EventSourceFacts, FunctionFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { props } from './props.ts';
import { duration, durationCode } from './words.ts';

const { pass, fail, unknown } = answers('visibility');

/** AWS's recommendation: time for the batch to be throttled and tried again before the queue hands it out once more. */
const FACTOR = 6;
/** SQS allows no longer visibility timeout. */
const LONGEST = 43_200;

/** A queue that hands out a message again while its function still runs makes duplicates of work, and counts receives for nothing. */
export function checkVisibility(facts: DeploymentFacts): Finding[] {
  return facts.eventSources.map((source) =>
    check(
      source,
      facts.functions.find(({ id }) => id === source.function),
    ),
  );
}

function check(source: EventSourceFacts, consumer: FunctionFacts | undefined): Finding {
  const { queue, batchingWindowSeconds: window } = source;
  const timeout = consumer?.timeoutSeconds;
  if (timeout === undefined || window === undefined) {
    return unknown(
      queue.id,
      `The timeout or the batching window of ${source.function} is not known, so neither is the visibility timeout that the queue needs`,
      'a function and an event source that this app defines',
    );
  }
  const needed = FACTOR * timeout + window;
  const sum = `${FACTOR} × the timeout of ${source.function} (${duration(timeout)})${window > 0 ? ` + the batching window (${duration(window)})` : ''} = ${duration(needed)}`;
  const visibility = queue.visibilitySeconds;
  if (visibility === undefined) {
    return unknown(
      queue.id,
      `The visibility timeout is not known; it must be at least ${sum}`,
      props.queueFacts(consumer?.role, 'visibilityTimeout'),
    );
  }
  if (visibility >= needed) {
    return pass(queue.id, `The visibility timeout is ${duration(visibility)}, at least ${sum}`);
  }
  const shorter = `the function's timeout to ${durationCode(Math.max(1, Math.floor((visibility - window) / FACTOR)))} or less`;
  const longer = `visibilityTimeout: ${durationCode(needed)} on the queue`;
  return fail(
    queue.id,
    `The visibility timeout is ${duration(visibility)}, shorter than ${sum}${visibility < timeout ? ', and shorter than the timeout itself, which Lambda refuses' : ''}`,
    needed > LONGEST ? `set ${shorter}` : `set ${longer}, or ${shorter}`,
  );
}
