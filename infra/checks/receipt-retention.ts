import { type Arrival, arrivals } from './arrivals.ts';
import type { DeploymentFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { props } from './props.ts';
import { longestRedelivery } from './redelivery.ts';
import { DAY } from './words.ts';

const { pass, fail, warning, unknown } = answers('receipt-retention');

/**
 * The same as of an inbox's rows, of a direct consumer's receipts: one that retention has removed can't recognise a
 * redelivery. A function that has a queue and `grantProduce` may be such a consumer, or take its messages its own way.
 */
export function checkReceiptRetention(facts: DeploymentFacts): Finding[] {
  return arrivals(facts)
    .filter(({ role }) => role === 'consumer' || role === 'producer')
    .map((arrival) => check(arrival, facts.receiptRetentionDays));
}

function check({ source, role }: Arrival, days: number): Finding {
  const subject = source.function;
  const longest = longestRedelivery(source.queue);
  const retention = `${days} days for which a consumer's receipts are kept`;
  if (!longest.known) {
    return unknown(
      subject,
      `${longest.what}; the ${retention} must exceed it and more`,
      props.queueFacts(role, longest.names),
    );
  }
  if (days * DAY > longest.seconds) return pass(subject, `The ${retention} exceed ${longest.way}`);
  const message = `The ${retention} do not exceed ${longest.way}: a redelivery after them would take effect twice`;
  const fix = `set maintenance: { receiptRetention: Duration.days(${Math.floor(longest.seconds / DAY) + 1}) } or more, or the queues' retention shorter`;
  return role === 'consumer'
    ? fail(subject, message, fix)
    : warning(subject, `${message}, if it is an sqsConsumer`, fix);
}
