import type { RequestOf } from '../../../operations/operations.ts';
import type { FailedResponse } from '../../../operations/responses.ts';
import { failedPage, laneValues, placeValues } from '../../operations/failed-page.ts';
import { rowsOf } from '../../operations/rows.ts';
import type { Names } from '../names.ts';
import { failedInbox, failedOutbox } from '../sql/operations-messages.ts';
import { inTransaction, type OperationsSource, reading } from './session.ts';

/** One page of Failed rows. */
export async function listFailed(
  source: OperationsSource,
  names: Names,
  request: RequestOf<'failed'>,
): Promise<FailedResponse> {
  // One more than asked for tells whether there is a next page.
  const values = [...laneValues(request), ...placeValues(request), request.limit + 1];
  const sql = request.box === 'outbox' ? failedOutbox(names) : failedInbox(names);
  const rows = await inTransaction(source, reading, async (client) =>
    rowsOf(await client.query(sql, values)),
  );
  return failedPage(request, rows);
}
