import type { Repairs } from '../../operations/repairs.ts';
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

/** Completes rows that another program ended in its own way, and forgets workers of long ago. */
export async function normalise({ source, names }: OutboxContext): Promise<number> {
  await source.query(forgetWorkers(names));
  let changed = 0;
  for (const sql of [normaliseOutbox(names), normaliseInbox(names)]) {
    const [row] = rowsOf(await retried(() => source.query(sql)));
    changed += row?.number('changed') ?? 0;
  }
  return changed;
}

/** Repairs on SQL Server. */
export function repairsOf({ source, names, leases }: OutboxContext): Repairs {
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
