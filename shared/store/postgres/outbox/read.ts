import type { OutboxReads } from '../../outbox/reader.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { holdSql } from '../sql/outbox-hold.ts';
import { readOnlySql, readSql } from '../sql/outbox-read.ts';

/** Reads of the outbox on PostgreSQL. */
export function outboxReads(database: Database, names: Names): OutboxReads {
  const all = readSql(names, { except: false });
  const others = readSql(names, { except: true });
  const only = readOnlySql(names);
  const hold = holdSql(names);
  return {
    async due(lease, { limit, maxBytes, probe, except = [] }, quotas) {
      const { rows } = await database.query(except.length > 0 ? others : all, [
        lease.destination,
        quotas.map(({ bucket }) => bucket),
        quotas.map(({ quota }) => quota),
        limit,
        maxBytes,
        probe?.token ?? null,
        ...(except.length > 0 ? [except] : []),
      ]);
      return rows;
    },

    async only({ destination, buckets }, { limit, maxBytes, probe }, ids) {
      const values = [destination, buckets, ids, limit, maxBytes, probe?.token ?? null];
      return (await database.query(only, values)).rows;
    },

    fitting(rows) {
      const end = rows.findIndex((row) => row['payload'] === null);
      return end === -1 ? rows : rows.slice(0, end);
    },

    async hold({ destination, token }, { messages, buckets }) {
      const keys = messages.map(({ partitionKey }) => partitionKey);
      const { rowCount } = await database.query(hold, [
        destination,
        buckets.map(({ bucket }) => bucket),
        token,
        buckets.map(({ lowest }) => lowest),
        [...new Set(keys)],
        messages.map(({ id }) => id),
        keys,
      ]);
      return rowCount ?? 0;
    },
  };
}
