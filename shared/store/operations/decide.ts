import { storable } from '../../message/text.ts';
import type { RequestOf } from '../../operations/operations.ts';
import type { FailedResponse, FateResponse } from '../../operations/responses.ts';
import { bySelection } from './fates.ts';
import {
  decideInbox,
  discardInboxRefusal,
  type InboxChanges,
  type InboxDecision,
  requeueInboxRefusal,
} from './inbox-fates.ts';
import {
  decideOutbox,
  discardRefusal,
  type OutboxChanges,
  type OutboxDecision,
  requeueRefusal,
} from './outbox-fates.ts';

/** What an engine brings to decisions about messages. */
export interface Decisions {
  listFailed(request: RequestOf<'failed'>): Promise<FailedResponse>;
  readonly outbox: OutboxChanges;
  readonly inbox: InboxChanges;
}

/** Gives Failed messages another try. */
export async function requeue(
  { listFailed, outbox, inbox }: Decisions,
  { dryRun, waitSeconds, select }: RequestOf<'requeue'>,
): Promise<FateResponse<'requeue'>> {
  const outgoing = { change: outbox.requeue, refusal: requeueRefusal };
  const incoming = { change: inbox.requeue, refusal: requeueInboxRefusal };
  const decided = await bySelection(listFailed, select, {
    outbox: (ids) => decideOutbox(outbox, outgoing, ids, { dryRun, waitSeconds }),
    inbox: (ids) => decideInbox(inbox, incoming, ids, { dryRun }),
  });
  return { command: 'requeue', dryRun, ...decided };
}

/** Ends messages in Discarded, with who and why. */
export async function discard(
  { listFailed, outbox, inbox }: Decisions,
  { dryRun, waitSeconds, select, by, reason }: RequestOf<'discard'>,
): Promise<FateResponse<'discard'>> {
  const lastError = storable(`Discarded by ${by}: ${reason}`);
  const outgoing: OutboxDecision = {
    change: (lease, ids) => outbox.discard(lease, ids, lastError),
    refusal: discardRefusal,
  };
  const incoming: InboxDecision = {
    change: (ids) => inbox.discard(ids, lastError),
    refusal: discardInboxRefusal,
  };
  const decided = await bySelection(listFailed, select, {
    outbox: (ids) => decideOutbox(outbox, outgoing, ids, { dryRun, waitSeconds }),
    inbox: (ids) => decideInbox(inbox, incoming, ids, { dryRun }),
  });
  return { command: 'discard', dryRun, ...decided };
}
