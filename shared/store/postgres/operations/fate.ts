import { storable } from '../../../message/text.ts';
import type { RequestOf } from '../../../operations/operations.ts';
import type { Selection } from '../../../operations/requests.ts';
import type { FateResponse } from '../../../operations/responses.ts';
import { listFailed } from './failed.ts';
import { discardInboxRows, requeueInboxRows } from './inbox-fate.ts';
import { discardOutboxRows, type Fates, type OutboxContext, requeueOutboxRows } from './outbox-fate.ts';

/** Gives Failed messages another try. */
export async function requeue(
  context: OutboxContext,
  request: RequestOf<'requeue'>,
): Promise<FateResponse<'requeue'>> {
  const { dryRun, waitSeconds, select } = request;
  const decided = await bySelection(context, select, {
    outbox: (ids) => requeueOutboxRows(context, ids, { dryRun, waitSeconds }),
    inbox: (ids) => requeueInboxRows(context, ids, { dryRun }),
  });
  return { command: 'requeue', dryRun, ...decided };
}

/** Ends messages in Discarded, with who and why. */
export async function discard(
  context: OutboxContext,
  request: RequestOf<'discard'>,
): Promise<FateResponse<'discard'>> {
  const { dryRun, waitSeconds, select } = request;
  const lastError = storable(`Discarded by ${request.by}: ${request.reason}`);
  const decided = await bySelection(context, select, {
    outbox: (ids) => discardOutboxRows(context, ids, { dryRun, waitSeconds, lastError }),
    inbox: (ids) => discardInboxRows(context, ids, { dryRun, lastError }),
  });
  return { command: 'discard', dryRun, ...decided };
}

async function bySelection(
  context: OutboxContext,
  select: Selection,
  decide: {
    readonly outbox: (ids: readonly string[]) => Promise<Fates>;
    readonly inbox: (ids: readonly string[]) => Promise<Fates>;
  },
): Promise<Fates & { readonly next: string | null }> {
  if ('lane' in select) {
    const { lane, limit, after } = select;
    const page = await listFailed(context.source, context.names, {
      command: 'failed',
      box: lane.box,
      lane,
      limit,
      after,
    });
    const decided = await decide[lane.box](page.messages.map(({ id }) => id));
    return { ...decided, next: page.next };
  }
  const outbox = await decide.outbox(select.ids);
  const inbox = await decide.inbox(select.ids);
  const changed = [...outbox.changed, ...inbox.changed];
  const refused = [...outbox.refused, ...inbox.refused];
  const seen = new Set([...changed, ...refused].map(({ id }) => id));
  const missing = select.ids
    .filter((id) => !seen.has(id))
    .map((id) => ({ id, reason: 'there is no such message, in the outbox or the inbox' }));
  return { changed, refused: [...refused, ...missing], next: null };
}
