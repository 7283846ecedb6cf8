import { Deadline } from '../../delivery/deadline.ts';
import { countLimit } from '../../operations/limits.ts';
import type { MaintenanceStore } from '../../operations/maintain.ts';
import type { RequestOf } from '../../operations/operations.ts';
import type { Purgeable } from '../../operations/requests.ts';
import type { PurgeResponse } from '../../operations/responses.ts';

/** What an engine brings to the removal of ended rows. */
export interface Purges {
  /** Rows per transaction: few enough that a lock is held for milliseconds, and that the log comes in small pieces. */
  readonly batchRows: number;
  /** How many rows a purge would remove, counted to one more than `countLimit`. */
  count(from: Purgeable, olderThanDays: number): Promise<number>;
  /** Removes a batch; answers how many rows went. `busy`: another purge is at it. */
  remove(
    from: Purgeable,
    olderThanDays: number,
    rows: number,
  ): Promise<{ readonly removed: number; readonly busy: boolean }>;
}

/** One call ends well within a function's time; the caller asks again while there is more. */
const callMs = 20_000;

/** Removes ended rows in small batches, up to the request's limit; with `dryRun` only counts them. */
export async function purge(purges: Purges, request: RequestOf<'purge'>): Promise<PurgeResponse> {
  const { from, olderThanDays, dryRun, limit } = request;
  const answer = (count: number, more: boolean): PurgeResponse => ({
    command: 'purge',
    from,
    dryRun,
    removed: { count, more },
  });
  if (dryRun) {
    const count = await purges.count(from, olderThanDays);
    return answer(Math.min(count, countLimit), count > countLimit);
  }
  const deadline = Deadline.in(callMs);
  const { removed, more } = await removeEnded(purges, { from, olderThanDays, limit, deadline });
  return answer(removed, more);
}

/** Removes batches until the limit, the deadline or the end; `more` where it was not the end, or another was at it. */
export async function removeEnded(
  purges: Purges,
  { from, olderThanDays, limit, deadline }: Parameters<MaintenanceStore['removeEnded']>[0],
): ReturnType<MaintenanceStore['removeEnded']> {
  let removed = 0;
  while (removed < limit && deadline.remainingMs() > 0) {
    const size = Math.min(purges.batchRows, limit - removed);
    const batch = await purges.remove(from, olderThanDays, size);
    removed += batch.removed;
    if (batch.busy) return { removed, more: true };
    if (batch.removed < size) return { removed, more: false };
  }
  return { removed, more: true };
}
