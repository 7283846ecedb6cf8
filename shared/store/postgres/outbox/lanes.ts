import type { OutboxLanes } from '../../outbox/store.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { insertRows } from '../producer.ts';
import { addSql } from '../sql/add.ts';
import { dueLanesSql, secondsToNextDueSql } from '../sql/outbox-due.ts';
import { bucketsOfSql, leaseRowsSql, leaseSql, releaseSql } from '../sql/outbox-lease.ts';

/** Leases and figures of lanes on PostgreSQL. */
export function outboxLanes(database: Database, names: Names): OutboxLanes {
  return {
    // A single statement is a transaction of its own, whatever connection it runs on.
    insert: (rows) =>
      insertRows({ query: (text, values) => database.query(text, values) }, addSql(names), rows),

    dueLanes: async () => (await database.query(dueLanesSql(names))).rows,

    async lease({ destination, limit, leaseMs, buckets }, token) {
      const values = [destination, limit, token, leaseMs, ...(buckets ? [buckets] : [])];
      const { rows } = await database.query(leaseSql(names, { named: buckets !== undefined }), values);
      return rows.map((row) => row['bucket'] as number);
    },

    makeLeases: async (destination) =>
      (await database.query(leaseRowsSql(names), [destination])).rowCount ?? 0,

    release: ({ destination, buckets, token }) =>
      database.query(releaseSql(names), [destination, buckets, token]),

    bucketsOf: async (ids) => (await database.query(bucketsOfSql(names), [ids])).rows,

    secondsToNextDue: async () => (await database.query(secondsToNextDueSql(names))).rows[0]?.['seconds'],
  };
}
