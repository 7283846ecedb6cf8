import type { OutboxChanges, OutboxLeases } from '../../operations/outbox-fates.ts';
import { rowsOf } from '../../operations/rows.ts';
import type { Names } from '../names.ts';
import { discardOutbox, locateOutbox, releaseFollowers, requeueOutbox } from '../sql/operations-outbox.ts';
import { inTransaction, type OperationsSource, writing } from './session.ts';

/** What decisions about messages need. */
export interface OutboxContext {
  readonly source: OperationsSource;
  readonly names: Names;
  readonly leases: OutboxLeases;
}

/** What decisions do to rows of the outbox, on PostgreSQL. */
export function outboxChanges({ source, names, leases }: OutboxContext): OutboxChanges {
  return {
    leases,

    locate: async (ids) => rowsOf(await source.query(locateOutbox(names), [ids])),

    requeue: ({ destination, token }, ids) =>
      inTransaction(source, writing, async (client) =>
        rowsOf(await client.query(requeueOutbox(names), [destination, token, ids])),
      ),

    discard: ({ destination, token }, ids, lastError) =>
      inTransaction(source, writing, async (client) => {
        const values = [destination, token, ids, lastError];
        const rows = rowsOf(await client.query(discardOutbox(names), values));
        const keys = [...new Set(rows.flatMap((row) => row.textOrNull('partition_key') ?? []))];
        if (keys.length > 0) await client.query(releaseFollowers(names), [destination, token, keys]);
        return rows;
      }),
  };
}
