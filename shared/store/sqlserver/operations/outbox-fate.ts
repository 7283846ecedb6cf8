import type { OutboxChanges, OutboxLeases } from '../../operations/outbox-fates.ts';
import { rowsOf } from '../../operations/rows.ts';
import type { Names } from '../names.ts';
import { discardOutbox, locateOutbox, releaseFollowers, requeueOutbox } from '../sql/operations-outbox.ts';
import { inTransaction, type OperationsSource } from './session.ts';

/** What decisions about messages need. */
export interface OutboxContext {
  readonly source: OperationsSource;
  readonly names: Names;
  readonly leases: OutboxLeases;
}

/** What decisions do to rows of the outbox, on SQL Server. */
export function outboxChanges({ source, names, leases }: OutboxContext): OutboxChanges {
  return {
    leases,

    locate: async (ids) => rowsOf(await source.query(locateOutbox(names), [JSON.stringify(ids)])),

    requeue: ({ destination, token }, ids) =>
      inTransaction(source, async (executor) =>
        rowsOf(await executor.query(requeueOutbox(names), [destination, token, JSON.stringify(ids)])),
      ),

    discard: ({ destination, token }, ids, lastError) =>
      inTransaction(source, async (executor) => {
        const values = [destination, token, JSON.stringify(ids), lastError];
        const rows = rowsOf(await executor.query(discardOutbox(names), values));
        const keys = [...new Set(rows.flatMap((row) => row.textOrNull('partition_key') ?? []))];
        if (keys.length > 0) {
          await executor.query(releaseFollowers(names), [destination, token, JSON.stringify(keys)]);
        }
        return rows;
      }),
  };
}
