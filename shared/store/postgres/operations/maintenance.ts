import type { Repairs } from '../../operations/repairs.ts';
import { type Row, rowsOf } from '../../operations/rows.ts';
import { pageKeys } from '../../operations/walk.ts';
import { keyIdentity, lockKeys } from '../sql/inbox-keys.ts';
import {
  checkKeys,
  forgetWorkers,
  normaliseInbox,
  normaliseOutbox,
  strandedKeys,
} from '../sql/operations-maintain.ts';
import { orphanedKeys, releaseFollowers } from '../sql/operations-outbox.ts';
import { isLockTrouble, keysIn, refresh, withKeys } from './inbox-fate.ts';
import type { OutboxContext } from './outbox-fate.ts';
import { inTransaction, type OperationsSource, reading, writing } from './session.ts';

/** Completes rows that another program ended in its own way, and forgets workers of long ago. */
export async function normalise({ source, names }: OutboxContext): Promise<number> {
  await source.query(forgetWorkers(names));
  let changed = 0;
  for (const sql of [normaliseOutbox(names), normaliseInbox(names)]) {
    changed += (await inTransaction(source, writing, (client) => client.query(sql))).rowCount ?? 0;
  }
  return changed;
}

/** Repairs on PostgreSQL. */
export function repairsOf({ source, names, leases }: OutboxContext): Repairs {
  return {
    leases,
    heldKeys: (place) => page(source, orphanedKeys(names), [...place, pageKeys]),

    async releaseFollowers({ destination, token }, keys) {
      const { rowCount } = await inTransaction(source, writing, (client) =>
        client.query(releaseFollowers(names), [destination, token, keys]),
      );
      return rowCount ?? 0;
    },

    keyPlace: keyIdentity,
    keys: (place) => page(source, checkKeys(names), place),

    refreshKeys: (wrong) =>
      inTransaction(source, writing, async (client) => {
        const keys = keysIn(wrong);
        await client.query(lockKeys(names), [...keys]);
        await refresh(client, names, keys);
      }),

    heads: (place) => page(source, strandedKeys(names), place),
    makeKeys: (ids) => withKeys({ source, names }, ids, async () => undefined),
    isLockTrouble,
  };
}

async function page(
  source: OperationsSource,
  sql: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  return await inTransaction(source, reading, async (client) => rowsOf(await client.query(sql, [...values])));
}
