import type { DeploymentFacts, InboxFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { props } from './props.ts';
import { duration } from './words.ts';

const { pass, fail, unknown } = answers('inbox-retention');

const DAY = 86_400;

/**
 * A row that retention has removed can't recognise its message's redelivery, and the message takes effect twice. So rows
 * must outlive the longest way a copy can take: the queue, then its dead-letter queue, then, moved back by a person, the
 * queue once more, since a redrive makes a new message with a retention of its own.
 */
export function checkInboxRetention(facts: DeploymentFacts): Finding[] {
  return facts.inboxes.map(check);
}

function check(inbox: InboxFacts): Finding {
  const { queue } = inbox;
  const subject = subjectOf(inbox);
  const dead = queue.deadLetterQueue;
  if (queue.retentionSeconds === undefined || dead === undefined) {
    return unknown(
      subject,
      `What ${queue.id} retains, or whether it has a dead-letter queue, is not known; the inbox's retention of ${inbox.retentionDays} days must exceed it`,
      props.inboxQueueFacts('retention, deadLetterQueue | noDeadLetterQueue'),
    );
  }
  if (dead !== 'none' && dead.retentionSeconds === undefined) {
    return unknown(
      subject,
      `What the dead-letter queue ${dead.id} retains is not known; the inbox's retention of ${inbox.retentionDays} days must exceed it and more`,
      props.inboxQueueFacts('deadLetterQueue: { retention }'),
    );
  }
  const inQueue = queue.retentionSeconds;
  const inDeadLetterQueue = dead === 'none' ? 0 : (dead.retentionSeconds ?? 0);
  const afterRedrive = dead === 'none' ? 0 : inQueue;
  const longest = inQueue + inDeadLetterQueue + afterRedrive;
  const way =
    dead === 'none'
      ? `the ${duration(inQueue)} that a copy can stay in ${queue.id}`
      : `${duration(inQueue)} in ${queue.id} + ${duration(inDeadLetterQueue)} in ${dead.id} + ${duration(afterRedrive)} in the queue again after a redrive = ${duration(longest)}`;
  const retention = inbox.retentionDays * DAY;
  return retention > longest
    ? pass(subject, `The inbox's retention of ${inbox.retentionDays} days exceeds ${way}`)
    : fail(
        subject,
        `The inbox's retention of ${inbox.retentionDays} days does not exceed ${way}: a redelivery after it would take effect twice`,
        `set maintenance: { inboxRetention: Duration.days(${Math.floor(longest / DAY) + 1}) } or more, or the queues' retention shorter`,
      );
}

function subjectOf({ source, consumer }: InboxFacts): string {
  return consumer === '' ? `inbox of ${source}` : `inbox of ${source} for ${consumer}`;
}
