import type { OutboxLanes } from '../../outbox/store.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { insertRows } from '../producer.ts';
import { addAloneSql } from '../sql/add.ts';
import { dueLanesSql, secondsToNextDueSql } from '../sql/outbox-due.ts';
import { bucketsOfSql, leaseRowsSql, leaseSql, releaseSql } from '../sql/outbox-lease.ts';

/** Leases and figures of lanes on SQL Server. */
export function outboxLanes(database: Database, names: Names): OutboxLanes {
  return {
    insert: (rows) =>
      insertRows({ query: (text, values) => database.query(text, values) }, addAloneSql(names), rows),

    dueLanes: async () => (await database.query(dueLanesSql(names))).rows,

    async lease({ destination, limit, leaseMs, buckets }, token) {
      const values = [destination, limit, token, leaseMs, ...(buckets ? [JSON.stringify(buckets)] : [])];
      const { rows } = await database.query(leaseSql(names, { named: buckets !== undefined }), values);
      return rows.map((row) => row['bucket'] as number);
    },

    makeLeases: async (destination) =>
      Number((await database.query(leaseRowsSql(names), [destination])).rows[0]?.['made'] ?? 0),

    release: ({ destination, buckets, token }) =>
      database.query(releaseSql(names), [destination, JSON.stringify(buckets), token]),

    bucketsOf: async (ids) => (await database.query(bucketsOfSql(names), [JSON.stringify(ids)])).rows,

    secondsToNextDue: async () => (await database.query(secondsToNextDueSql(names))).rows[0]?.['seconds'],
  };
}
