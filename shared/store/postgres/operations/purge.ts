import { Deadline } from '../../../delivery/deadline.ts';
import type { RequestOf } from '../../../operations/operations.ts';
import type { Purgeable } from '../../../operations/requests.ts';
import type { PurgeResponse } from '../../../operations/responses.ts';
import type { Names } from '../names.ts';
import { purgeable, purgeBatch } from '../sql/operations-purge.ts';
import { countLimit } from '../sql/operations-shared.ts';
import { inTransaction, type OperationsSource, reading, rowsOf, writing } from './session.ts';

/** Rows per transaction: a lock is held for milliseconds, and the log comes in small pieces. */
const batchRows = 1000;
/** One call ends well within a function's time; the caller asks again while there is more. */
const callMs = 20_000;

/** Removes ended rows in small batches, up to the request's limit; with `dryRun` only counts them. */
export async function purge(
  source: OperationsSource,
  names: Names,
  request: RequestOf<'purge'>,
): Promise<PurgeResponse> {
  const { from, olderThanDays, dryRun, limit } = request;
  const answer = (count: number, more: boolean): PurgeResponse => ({
    command: 'purge',
    from,
    dryRun,
    removed: { count, more },
  });
  if (dryRun) {
    const count = await inTransaction(source, reading, async (client) =>
      rowsOf(await client.query(purgeable(names, from), [olderThanDays]))[0]?.number('count'),
    );
    return answer(Math.min(count ?? 0, countLimit), (count ?? 0) > countLimit);
  }
  const { removed, more } = await removeEnded(source, names, {
    from,
    olderThanDays,
    limit,
    deadline: Deadline.in(callMs),
  });
  return answer(removed, more);
}

/** Removes batches until the limit, the deadline or the end; `more` where it was not the end. */
export async function removeEnded(
  source: OperationsSource,
  names: Names,
  request: {
    readonly from: Purgeable;
    readonly olderThanDays: number;
    readonly limit: number;
    readonly deadline: Deadline;
  },
): Promise<{ readonly removed: number; readonly more: boolean }> {
  let removed = 0;
  while (removed < request.limit && request.deadline.remainingMs() > 0) {
    const size = Math.min(batchRows, request.limit - removed);
    const { rowCount } = await inTransaction(source, writing, (client) =>
      client.query(purgeBatch(names, request.from), [request.olderThanDays, size]),
    );
    removed += rowCount ?? 0;
    if ((rowCount ?? 0) < size) return { removed, more: false };
  }
  return { removed, more: true };
}
