import type { SqlExecutor } from '../../executor.ts';
import type { Fates } from '../../operations/fates.ts';
import {
  decideOutbox,
  discardRefusal,
  type LocatedOutbox,
  type OutboxDecisions,
  type OutboxLeases,
  requeueRefusal,
} from '../../operations/outbox-fates.ts';
import { rowsOf } from '../../operations/rows.ts';
import type { LaneLease } from '../../outbox-store.ts';
import type { Names } from '../names.ts';
import { discardOutbox, locateOutbox, releaseFollowers, requeueOutbox } from '../sql/operations-outbox.ts';
import { inTransaction, type OperationsSource } from './session.ts';

/** What decisions about messages need. */
export interface OutboxContext {
  readonly source: OperationsSource;
  readonly names: Names;
  readonly leases: OutboxLeases;
}

/** Failed → Pending, under the lease of each row's bucket. */
export async function requeueOutboxRows(
  context: OutboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean; readonly waitSeconds: number },
): Promise<Fates> {
  const { names } = context;
  const change = async (executor: SqlExecutor, lease: LaneLease, some: readonly string[]) => {
    const values = [lease.destination, lease.token, JSON.stringify(some)];
    return rowsOf(await executor.query(requeueOutbox(names), values)).map((row) => row.text('id'));
  };
  return await decideOutbox(decisions(context, change), ids, options, requeueRefusal);
}

/** Unfinished or Failed → Discarded, under the lease of each row's bucket; what was held behind goes on. */
export async function discardOutboxRows(
  context: OutboxContext,
  ids: readonly string[],
  options: { readonly dryRun: boolean; readonly waitSeconds: number; readonly lastError: string },
): Promise<Fates> {
  const { names } = context;
  const change = async (executor: SqlExecutor, lease: LaneLease, some: readonly string[]) => {
    const values = [lease.destination, lease.token, JSON.stringify(some), options.lastError];
    const rows = rowsOf(await executor.query(discardOutbox(names), values));
    const keys = [...new Set(rows.flatMap((row) => row.textOrNull('partition_key') ?? []))];
    if (keys.length > 0) {
      const followers = [lease.destination, lease.token, JSON.stringify(keys)];
      await executor.query(releaseFollowers(names), followers);
    }
    return rows.map((row) => row.text('id'));
  };
  return await decideOutbox(decisions(context, change), ids, options, discardRefusal);
}

function decisions(
  context: OutboxContext,
  change: (executor: SqlExecutor, lease: LaneLease, ids: readonly string[]) => Promise<readonly string[]>,
): OutboxDecisions {
  return {
    leases: context.leases,
    locate: (ids) => locate(context, ids),
    change: (lease, ids) => inTransaction(context.source, (executor) => change(executor, lease, ids)),
  };
}

async function locate(
  { source, names }: OutboxContext,
  ids: readonly string[],
): Promise<readonly LocatedOutbox[]> {
  return rowsOf(await source.query(locateOutbox(names), [JSON.stringify(ids)])).map((row) => ({
    id: row.text('id'),
    destination: row.text('destination'),
    bucket: row.number('bucket'),
    state: row.number('state'),
    running: row.flag('running'),
  }));
}
