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
  decisions: Decisions,
  request: RequestOf<'requeue'>,
): Promise<FateResponse<'requeue'>> {
  const { outbox, inbox } = decisions;
  const decided = await decide(decisions, request, {
    outbox: { change: outbox.requeue, refusal: requeueRefusal },
    inbox: { change: inbox.requeue, refusal: requeueInboxRefusal },
  });
  return { command: 'requeue', dryRun: request.dryRun, ...decided };
}

/** Ends messages in Discarded, with who and why. */
export async function discard(
  decisions: Decisions,
  request: RequestOf<'discard'>,
): Promise<FateResponse<'discard'>> {
  const { outbox, inbox } = decisions;
  const lastError = storable(`Discarded by ${request.by}: ${request.reason}`);
  const decided = await decide(decisions, request, {
    outbox: { change: (lease, ids) => outbox.discard(lease, ids, lastError), refusal: discardRefusal },
    inbox: { change: (ids) => inbox.discard(ids, lastError), refusal: discardInboxRefusal },
  });
  return { command: 'discard', dryRun: request.dryRun, ...decided };
}

async function decide(
  { listFailed, outbox, inbox }: Decisions,
  { dryRun, waitSeconds, select }: RequestOf<'requeue' | 'discard'>,
  decision: { readonly outbox: OutboxDecision; readonly inbox: InboxDecision },
): ReturnType<typeof bySelection> {
  return await bySelection(listFailed, select, {
    outbox: (ids) => decideOutbox(outbox, decision.outbox, ids, { dryRun, waitSeconds }),
    inbox: (ids) => decideInbox(inbox, decision.inbox, ids, { dryRun }),
  });
}
