import { Deadline } from '../../../delivery/deadline.ts';
import { countLimit } from '../../../operations/limits.ts';
import type { RequestOf } from '../../../operations/operations.ts';
import type { Purgeable } from '../../../operations/requests.ts';
import type { PurgeResponse } from '../../../operations/responses.ts';
import { rowsOf } from '../../operations/rows.ts';
import { retried } from '../inbox/retry.ts';
import type { Names } from '../names.ts';
import { purgeable, purgeBatch, purgeLock } from '../sql/operations-purge.ts';
import type { OperationsSource } from './session.ts';

/** Rows per transaction: few enough that locks are held for milliseconds and are never made one of the whole table. */
const batchRows = 500;
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
    const [row] = rowsOf(await source.query(purgeable(names, from), [olderThanDays]));
    const count = row?.number('count') ?? 0;
    return answer(Math.min(count, countLimit), count > countLimit);
  }
  const deadline = Deadline.in(callMs);
  const { removed, more } = await removeEnded(source, names, { from, olderThanDays, limit, deadline });
  return answer(removed, more);
}

/** Removes batches until the limit, the deadline or the end; `more` where it was not the end, or another was at it. */
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
  const { from, olderThanDays, limit, deadline } = request;
  let removed = 0;
  while (removed < limit && deadline.remainingMs() > 0) {
    const size = Math.min(batchRows, limit - removed);
    const values = [olderThanDays, size, purgeLock(names, from)];
    const [row] = rowsOf(await retried(() => source.query(purgeBatch(names, from), values)));
    const count = row?.number('removed') ?? 0;
    removed += count;
    if (row?.flag('busy')) return { removed, more: true };
    if (count < size) return { removed, more: false };
  }
  return { removed, more: true };
}
