import type { Fates } from '../../operations/fates.ts';
import {
  decideOutbox,
  discardRefusal,
  type LocatedOutbox,
  type OutboxLeases,
  requeueRefusal,
} from '../../operations/outbox-fates.ts';
import type { LaneLease } from '../../outbox-store.ts';
import type { Names } from '../names.ts';
import { discardOutbox, locateOutbox, releaseFollowers, requeueOutbox } from '../sql/operations-outbox.ts';
import { inTransaction, type OperationsSource, rowsOf, writing } from './session.ts';

/** What decisions about messages need. */
export interface OutboxContext {
  readonly source: OperationsSource;
  readonly names: Names;
  readonly leases: OutboxLeases;
}

async function locate(
  { source, names }: OutboxContext,
  ids: readonly string[],
): Promise<readonly LocatedOutbox[]> {
  return rowsOf(await source.query(locateOutbox(names), [ids])).map((row) => ({
    id: row.text('id'),
    destination: row.text('destination'),
    bucket: row.number('bucket'),
    state: row.number('state'),
    running: row.flag('running'),
  }));
}

/** Failed → Pending, under the lease of each row's bucket. */
export async function requeueOutboxRows(
  context: OutboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean; readonly waitSeconds: number },
): Promise<Fates> {
  const { source, names, leases } = context;
  const decisions = {
    leases,
    locate: (some: readonly string[]) => locate(context, some),
    change: (lease: LaneLease, some: readonly string[]) =>
      inTransaction(source, writing, async (client) => {
        const values = [lease.destination, lease.token, some];
        return rowsOf(await client.query(requeueOutbox(names), values)).map((row) => row.text('id'));
      }),
  };
  return await decideOutbox(decisions, ids, options, requeueRefusal);
}

/** Unfinished or Failed → Discarded, under the lease of each row's bucket; what was held behind goes on. */
export async function discardOutboxRows(
  context: OutboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean; readonly waitSeconds: number; readonly lastError: string },
): Promise<Fates> {
  const { source, names, leases } = context;
  const decisions = {
    leases,
    locate: (some: readonly string[]) => locate(context, some),
    change: (lease: LaneLease, some: readonly string[]) =>
      inTransaction(source, writing, async (client) => {
        const values = [lease.destination, lease.token, some, options.lastError];
        const rows = rowsOf(await client.query(discardOutbox(names), values));
        const keys = [...new Set(rows.flatMap((row) => row.textOrNull('partition_key') ?? []))];
        if (keys.length > 0) {
          await client.query(releaseFollowers(names), [lease.destination, lease.token, keys]);
        }
        return rows.map((row) => row.text('id'));
      }),
  };
  return await decideOutbox(decisions, ids, options, discardRefusal);
}
