import type { MaintenanceStore } from '../../operations/maintain.ts';
import type { LaneLease } from '../outbox-store.ts';
import { type OutboxLeases, withBuckets } from './outbox-fates.ts';
import type { Row } from './rows.ts';
import { Walk, walkAll } from './walk.ts';

/** A page of rows behind a place, in the order of the columns that say where a row is. */
type Page = (place: readonly string[]) => Promise<readonly Row[]>;

/** What an engine brings to the repairs of maintenance. Everything here is harmless when two do it at once. */
export interface Repairs {
  readonly leases: OutboxLeases;
  /** Keys of the outbox that have held rows: `destination`, `partition_key`, `bucket`, and whether they are `orphaned`. */
  readonly heldKeys: Page;
  /** Lets held rows of these keys go, under the lease; answers how many. */
  releaseFollowers(lease: LaneLease, keys: readonly string[]): Promise<number>;
  /** The columns that say which key of the inbox a row names. */
  readonly keyPlace: readonly string[];
  /** Keys of the inbox, and whether what they say is `wrong`. */
  readonly keys: Page;
  /** Names the heads of these keys anew, under their locks. */
  refreshKeys(wrong: readonly Row[]): Promise<unknown>;
  /** Keyed messages, the first of each key: `id`, and whether its key is `missing`. */
  readonly heads: Page;
  /** Makes the keys of these messages, and names their heads. */
  makeKeys(ids: readonly string[]): Promise<unknown>;
  /** True where somebody holds a lock that a short wait did not free, or for a deadlock's victim. */
  isLockTrouble(error: unknown): boolean;
}

/** The repairs of maintenance. Make them once per process: their walks keep their place. */
export function repairing(repairs: Repairs): Pick<MaintenanceStore, 'releaseOrphans' | 'repairKeys'> {
  const { keyPlace, keys, heads } = repairs;
  const outbox = [
    new Walk({
      place: ['destination', 'partition_key'],
      page: repairs.heldKeys,
      work: (rows) => releaseOrphans(repairs, rows),
    }),
  ];
  const inbox = [
    new Walk({ place: keyPlace, page: keys, work: (rows) => refreshWrong(repairs, rows) }),
    new Walk({ place: keyPlace, page: heads, work: (rows) => makeMissing(repairs, rows) }),
  ];
  return {
    releaseOrphans: (deadline) => walkAll(outbox, deadline),
    repairKeys: (deadline) => walkAll(inbox, deadline),
  };
}

/** Lets held rows go that nothing before them will let go, under their buckets' leases. A busy bucket waits for the next time. */
async function releaseOrphans(repairs: Repairs, rows: readonly Row[]): Promise<number> {
  let released = 0;
  const orphaned = rows.filter((row) => row.flag('orphaned'));
  for (const destination of new Set(orphaned.map((row) => row.text('destination')))) {
    const lane = orphaned.filter((row) => row.text('destination') === destination);
    const buckets = [...new Set(lane.map((row) => row.number('bucket')))];
    await withBuckets(repairs.leases, { destination, buckets, waitSeconds: 0 }, async (lease) => {
      const mine = lane.filter((row) => lease.buckets.includes(row.number('bucket')));
      const keys = mine.map((row) => row.text('partition_key'));
      released += await repairs.releaseFollowers(lease, keys);
    });
  }
  return released;
}

async function refreshWrong(repairs: Repairs, rows: readonly Row[]): Promise<number> {
  const wrong = rows.filter((row) => row.flag('wrong'));
  if (wrong.length > 0) await unlessLocked(repairs, () => repairs.refreshKeys(wrong));
  return wrong.length;
}

async function makeMissing(repairs: Repairs, rows: readonly Row[]): Promise<number> {
  const ids = rows.filter((row) => row.flag('missing')).map((row) => row.text('id'));
  if (ids.length > 0) await unlessLocked(repairs, () => repairs.makeKeys(ids));
  return ids.length;
}

/** A key in somebody's hands is looked at again next time. */
async function unlessLocked(repairs: Repairs, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!repairs.isLockTrouble(error)) throw error;
  }
}
