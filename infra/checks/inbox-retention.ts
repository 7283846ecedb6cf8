import type { DeploymentFacts, InboxFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { props } from './props.ts';
import { longestRedelivery } from './redelivery.ts';
import { DAY } from './words.ts';

const { pass, fail, unknown } = answers('inbox-retention');

/**
 * A row that retention has removed can't recognise its message's redelivery, and the message takes effect twice. So rows
 * must outlive the longest way a copy can take.
 */
export function checkInboxRetention(facts: DeploymentFacts): Finding[] {
  return facts.inboxes.map(check);
}

function check(inbox: InboxFacts): Finding {
  const subject = subjectOf(inbox);
  const longest = longestRedelivery(inbox.queue);
  const retention = `inbox's retention of ${inbox.retentionDays} days`;
  if (!longest.known) {
    return unknown(
      subject,
      `${longest.what}; the ${retention} must exceed it and more`,
      props.queueFacts('ingest', longest.names),
    );
  }
  return inbox.retentionDays * DAY > longest.seconds
    ? pass(subject, `The ${retention} exceeds ${longest.way}`)
    : fail(
        subject,
        `The ${retention} does not exceed ${longest.way}: a redelivery after it would take effect twice`,
        `set maintenance: { inboxRetention: Duration.days(${Math.floor(longest.seconds / DAY) + 1}) } or more, or the queues' retention shorter`,
      );
}

function subjectOf({ source, consumer }: InboxFacts): string {
  return consumer === '' ? `inbox of ${source}` : `inbox of ${source} for ${consumer}`;
}
