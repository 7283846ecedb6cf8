import type { MaintenanceStore } from '../../../operations/maintain.ts';
import { type Purges, removeEnded } from '../../operations/purging.ts';
import { type Repairs, repairing } from '../../operations/repairs.ts';
import { type Row, rowsOf } from '../../operations/rows.ts';
import { pageKeys } from '../../operations/walk.ts';
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
import { inTransaction, type OperationsSource } from './session.ts';
import { readStatus } from './status.ts';

/** Maintenance on SQL Server. Everything here is harmless when two do it at once. */
export function sqlServerMaintenance(context: OutboxContext, purges: Purges): MaintenanceStore {
  const { source, names } = context;
  return {
    status: () => readStatus(source, names),
    removeEnded: (request) => removeEnded(purges, request),
    ...repairing(repairs(context)),
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

function repairs({ source, names, leases }: OutboxContext): Repairs {
  return {
    leases,
    heldKeys: async (place) => rowsOf(await source.query(orphanedKeys(names), [...place, pageKeys])),

    async releaseFollowers({ destination, token }, keys) {
      const { rows } = await inTransaction(source, (executor) =>
        executor.query(releaseFollowers(names), [destination, token, JSON.stringify(keys)]),
      );
      return rows.length;
    },

    keyPlace: ['key'],
    keys: (place) => page(source, checkKeys(names), place),

    refreshKeys: (wrong) =>
      inTransaction(source, async (executor) => {
        const keys = wrong.map((row) => row.text('key'));
        await executor.query(lockKeys(names), [JSON.stringify(keys.map((key) => ({ key, token: null })))]);
        await refresh(executor, names, keys);
      }),

    heads: (place) => page(source, strandedKeys(names), place),
    makeKeys: (ids) => withKeys({ source, names }, ids, async () => undefined),
    isLockTrouble,
  };
}

/** A page behind a digest; before the first is the least there is. */
async function page(
  source: OperationsSource,
  sql: string,
  [place]: readonly string[],
): Promise<readonly Row[]> {
  return rowsOf(await source.query(sql, [place || '0'.repeat(64)]));
}
