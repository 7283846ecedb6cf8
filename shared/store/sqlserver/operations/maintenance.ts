import type { Deadline } from '../../../delivery/deadline.ts';
import type { MaintenanceStore } from '../../../operations/maintain.ts';
import { withBuckets } from '../../operations/outbox-fates.ts';
import { type Row, rowsOf } from '../../operations/rows.ts';
import { retried } from '../inbox/retry.ts';
import type { Names } from '../names.ts';
import { lockKeys } from '../sql/inbox-keys.ts';
import {
  checkKeys,
  forgetWorkers,
  normaliseInbox,
  normaliseOutbox,
  pageKeys,
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
  return {
    status: () => readStatus(source, names),
    removeEnded: (request) => removeEnded(source, names, request),
    releaseOrphans: (deadline) => releaseOrphans(context, deadline),
    repairKeys: async (deadline) =>
      (await repairWrongKeys(source, names, deadline)) + (await repairStrandedKeys(source, names, deadline)),
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
async function releaseOrphans(context: OutboxContext, deadline: Deadline): Promise<number> {
  const { source, names, leases } = context;
  let released = 0;
  let place = ['', ''];
  while (deadline.remainingMs() > 0) {
    const rows = rowsOf(await source.query(orphanedKeys(names), [...place, pageKeys]));
    const orphans = rows.filter((row) => row.flag('orphaned'));
    for (const destination of new Set(orphans.map((row) => row.text('destination')))) {
      const lane = orphans.filter((row) => row.text('destination') === destination);
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
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageKeys) break;
    place = [last.text('destination'), last.text('partition_key')];
  }
  return released;
}

async function repairWrongKeys(source: OperationsSource, names: Names, deadline: Deadline): Promise<number> {
  return await eachPage(source, checkKeys(names), deadline, async (rows) => {
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
  });
}

async function repairStrandedKeys(
  source: OperationsSource,
  names: Names,
  deadline: Deadline,
): Promise<number> {
  return await eachPage(source, strandedKeys(names), deadline, async (rows) => {
    const ids = rows.filter((row) => row.flag('missing')).map((row) => row.text('id'));
    if (ids.length > 0) await unlessLocked(() => withKeys({ source, names }, ids, async () => undefined));
    return ids.length;
  });
}

async function eachPage(
  source: OperationsSource,
  sql: string,
  deadline: Deadline,
  work: (rows: readonly Row[]) => Promise<number>,
): Promise<number> {
  let total = 0;
  let place = '0'.repeat(64);
  while (deadline.remainingMs() > 0) {
    const rows = rowsOf(await source.query(sql, [place]));
    total += await work(rows);
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageKeys) break;
    place = last.text('key');
  }
  return total;
}

/** A key in somebody's hands is looked at again next time. */
async function unlessLocked(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isLockTrouble(error)) throw error;
  }
}
