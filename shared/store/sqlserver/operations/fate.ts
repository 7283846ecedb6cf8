import { storable } from '../../../message/text.ts';
import type { RequestOf } from '../../../operations/operations.ts';
import type { Selection } from '../../../operations/requests.ts';
import type { FateResponse } from '../../../operations/responses.ts';
import { bySelection } from '../../operations/fates.ts';
import { listFailed } from './failed.ts';
import { discardInboxRows, requeueInboxRows } from './inbox-fate.ts';
import { discardOutboxRows, type OutboxContext, requeueOutboxRows } from './outbox-fate.ts';

/** Gives Failed messages another try. */
export async function requeue(
  context: OutboxContext,
  request: RequestOf<'requeue'>,
): Promise<FateResponse<'requeue'>> {
  const { dryRun, waitSeconds, select } = request;
  const decided = await bySelection(pageOf(context), lowered(select), {
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
  const decided = await bySelection(pageOf(context), lowered(select), {
    outbox: (ids) => discardOutboxRows(context, ids, { dryRun, waitSeconds, lastError }),
    inbox: (ids) => discardInboxRows(context, ids, { dryRun, lastError }),
  });
  return { command: 'discard', dryRun, ...decided };
}

const pageOf = (context: OutboxContext) => (request: RequestOf<'failed'>) =>
  listFailed(context.source, context.names, request);

/** The server writes ids in capitals and people as they come; answers are matched to requests in small letters. */
function lowered(select: Selection): Selection {
  return 'ids' in select ? { ids: select.ids.map((id) => id.toLowerCase()) } : select;
}
