import type { MaintenanceStore } from '../../../operations/maintain.ts';
import { withBuckets } from '../../operations/outbox-fates.ts';
import { pageKeys, Walk, walkAll } from '../../operations/walk.ts';
import { keyIdentity, lockKeys as lockGivenKeys } from '../sql/inbox-keys.ts';
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
import { inTransaction, type OperationsSource, type Row, reading, rowsOf, writing } from './session.ts';
import { readStatus } from './status.ts';

/** Maintenance on PostgreSQL. Everything here is harmless when two do it at once. */
export function postgresMaintenance(context: OutboxContext): MaintenanceStore {
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
        changed += (await inTransaction(source, writing, (client) => client.query(sql))).rowCount ?? 0;
      }
      return changed;
    },
  };
}

/** Lets held rows go that nothing before them will let go, under their buckets' leases. A busy bucket waits for the next time. */
function orphans({ source, names, leases }: OutboxContext): Walk {
  return new Walk({
    place: ['destination', 'partition_key'],
    page: (place) => page(source, orphanedKeys(names), [...place, pageKeys]),
    work: async (rows) => {
      let released = 0;
      const orphaned = rows.filter((row) => row.flag('orphaned'));
      for (const destination of new Set(orphaned.map((row) => row.text('destination')))) {
        const lane = orphaned.filter((row) => row.text('destination') === destination);
        const buckets = [...new Set(lane.map((row) => row.number('bucket')))];
        await withBuckets(leases, { destination, buckets, waitSeconds: 0 }, async (lease) => {
          const mine = lane.filter((row) => lease.buckets.includes(row.number('bucket')));
          const keys = mine.map((row) => row.text('partition_key'));
          const { rowCount } = await inTransaction(source, writing, (client) =>
            client.query(releaseFollowers(names), [destination, lease.token, keys]),
          );
          released += rowCount ?? 0;
        });
      }
      return released;
    },
  });
}

function wrongKeys({ source, names }: OutboxContext): Walk {
  return new Walk({
    place: keyIdentity,
    page: (place) => page(source, checkKeys(names), place),
    work: async (rows) => {
      const wrong = rows.filter((row) => row.flag('wrong'));
      if (wrong.length === 0) return 0;
      const keys = {
        consumers: wrong.map((row) => row.text('consumer')),
        sources: wrong.map((row) => row.text('source')),
        keys: wrong.map((row) => row.text('partition_key')),
      };
      await unlessLocked(() =>
        inTransaction(source, writing, async (client) => {
          await client.query(lockGivenKeys(names), [keys.consumers, keys.sources, keys.keys]);
          await refresh(client, names, keys);
        }),
      );
      return wrong.length;
    },
  });
}

function strandedOnes({ source, names }: OutboxContext): Walk {
  return new Walk({
    place: keyIdentity,
    page: (place) => page(source, strandedKeys(names), place),
    work: async (rows) => {
      const ids = rows.filter((row) => row.flag('missing')).map((row) => row.text('id'));
      if (ids.length > 0) await unlessLocked(() => withKeys({ source, names }, ids, async () => undefined));
      return ids.length;
    },
  });
}

async function page(
  source: OperationsSource,
  sql: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  return await inTransaction(source, reading, async (client) => rowsOf(await client.query(sql, [...values])));
}

/** A key in somebody's hands is looked at again next time. */
async function unlessLocked(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isLockTrouble(error)) throw error;
  }
}
