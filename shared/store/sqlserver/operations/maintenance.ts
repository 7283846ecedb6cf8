import type { MaintenanceStore } from '../../../operations/maintain.ts';
import { withBuckets } from '../../operations/outbox-fates.ts';
import { type Row, rowsOf } from '../../operations/rows.ts';
import { pageKeys, Walk, walkAll } from '../../operations/walk.ts';
import { retried } from '../inbox/retry.ts';
import { lockKeys } from '../sql/inbox-keys.ts';
import {
  checkKeys,
  forgetWorkers,
  normaliseInbox,
  normaliseOutbox,
  strandedKeys,
} from '../sql/operations-maintain.ts';
import { orphanedKeys, releaseFollowers } from '../sql/operations-outbox.ts';
import { isLockTrouble, refresh, withKeys } from './inbox-fate.ts';
import type { OutboxContext } from './outbox-fate.ts';
import { removeEnded } from './purge.ts';
import { inTransaction, type OperationsSource } from './session.ts';
import { readStatus } from './status.ts';

/** Maintenance on SQL Server. Everything here is harmless when two do it at once. */
export function sqlServerMaintenance(context: OutboxContext): MaintenanceStore {
  const { source, names } = context;
  const outbox = [orphans(context)];
  const inbox = [wrongKeys(context), strandedOnes(context)];
  return {
    status: () => readStatus(source, names),
    removeEnded: (request) => removeEnded(source, names, request),
    releaseOrphans: (deadline) => walkAll(outbox, deadline),
    repairKeys: (deadline) => walkAll(inbox, deadline),
    normalise: async () => {
      await source.query(forgetWorkers(names));
      let changed = 0;
      for (const sql of [normaliseOutbox(names), normaliseInbox(names)]) {
        const [row] = rowsOf(await retried(() => source.query(sql)));
        changed += row?.number('changed') ?? 0;
      }
      return changed;
    },
  };
}

/** Lets held rows go that nothing before them will let go, under their buckets' leases. A busy bucket waits for the next time. */
function orphans({ source, names, leases }: OutboxContext): Walk {
  return new Walk({
    place: ['destination', 'partition_key'],
    page: async (place) => rowsOf(await source.query(orphanedKeys(names), [...place, pageKeys])),
    work: async (rows) => {
      let released = 0;
      const orphaned = rows.filter((row) => row.flag('orphaned'));
      for (const destination of new Set(orphaned.map((row) => row.text('destination')))) {
        const lane = orphaned.filter((row) => row.text('destination') === destination);
        const buckets = [...new Set(lane.map((row) => row.number('bucket')))];
        await withBuckets(leases, { destination, buckets, waitSeconds: 0 }, async (lease) => {
          const mine = lane.filter((row) => lease.buckets.includes(row.number('bucket')));
          const keys = JSON.stringify(mine.map((row) => row.text('partition_key')));
          const { rows: freed } = await inTransaction(source, (executor) =>
            executor.query(releaseFollowers(names), [destination, lease.token, keys]),
          );
          released += freed.length;
        });
      }
      return released;
    },
  });
}

function wrongKeys({ source, names }: OutboxContext): Walk {
  return new Walk({
    place: ['key'],
    page: (place) => page(source, checkKeys(names), place),
    work: async (rows) => {
      const wrong = rows.filter((row) => row.flag('wrong')).map((row) => row.text('key'));
      if (wrong.length === 0) return 0;
      const keys = JSON.stringify(wrong.map((key) => ({ key, token: null })));
      await unlessLocked(() =>
        inTransaction(source, async (executor) => {
          await executor.query(lockKeys(names), [keys]);
          await refresh(executor, names, wrong);
        }),
      );
      return wrong.length;
    },
  });
}

function strandedOnes({ source, names }: OutboxContext): Walk {
  return new Walk({
    place: ['key'],
    page: (place) => page(source, strandedKeys(names), place),
    work: async (rows) => {
      const ids = rows.filter((row) => row.flag('missing')).map((row) => row.text('id'));
      if (ids.length > 0) await unlessLocked(() => withKeys({ source, names }, ids, async () => undefined));
      return ids.length;
    },
  });
}

/** A page behind a digest; before the first is the least there is. */
async function page(
  source: OperationsSource,
  sql: string,
  [place]: readonly string[],
): Promise<readonly Row[]> {
  return rowsOf(await source.query(sql, [place || '0'.repeat(64)]));
}

/** A key in somebody's hands is looked at again next time. */
async function unlessLocked(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isLockTrouble(error)) throw error;
  }
}
