import type { RequestOf } from '../../../operations/operations.ts';
import type { FailedResponse } from '../../../operations/responses.ts';
import { failedPage, laneValues, placeValues } from '../../operations/failed-page.ts';
import { rowsOf } from '../../operations/rows.ts';
import { digestHex } from '../digest.ts';
import type { Names } from '../names.ts';
import { failedInbox, failedOutbox } from '../sql/operations-messages.ts';
import type { OperationsSource } from './session.ts';

/** One page of Failed rows. */
export async function listFailed(
  source: OperationsSource,
  names: Names,
  request: RequestOf<'failed'>,
): Promise<FailedResponse> {
  // One more than asked for tells whether there is a next page.
  const values = [...laneValues(request), ...placeValues(request), request.limit + 1];
  if (request.box === 'outbox') {
    return failedPage(request, rowsOf(await source.query(failedOutbox(names), values)));
  }
  const { lane } = request;
  const digest = lane?.box === 'inbox' ? digestHex(lane.consumer, lane.messageType) : null;
  return failedPage(request, rowsOf(await source.query(failedInbox(names), [...values, digest])));
}
