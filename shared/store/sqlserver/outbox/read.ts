import { Buffer } from 'node:buffer';
import type { Exclusive } from '../../outbox/exclusive.ts';
import type { OutboxReads } from '../../outbox/reader.ts';
import type { LaneLease, ReadRequest } from '../../outbox-store.ts';
import type { DriverRow } from '../../values.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { holdSql } from '../sql/outbox-hold.ts';
import { readOnlySql, readSql } from '../sql/outbox-read.ts';

/**
 * Reads of the outbox on SQL Server. Never while a settle of the same lease is under way: a read sees rows and not a
 * moment, and would find a key's later row free but not the earlier one.
 */
export function outboxReads(database: Database, names: Names, exclusive: Exclusive): OutboxReads {
  const all = readSql(names);
  const only = readOnlySql(names);
  const hold = holdSql(names);

  const read = async (
    text: string,
    lease: LaneLease,
    { limit, maxBytes, probe }: ReadRequest,
    [buckets, ids]: readonly [readonly unknown[], readonly string[]],
  ): Promise<readonly DriverRow[]> => {
    const [wanted, named] = [JSON.stringify(buckets), JSON.stringify(ids)];
    const values = [lease.destination, wanted, limit, maxBytes, probe?.token ?? null, named];
    return await exclusive.run(lease.token, async () => (await database.query(text, values)).rows);
  };

  return {
    due(lease, request, quotas) {
      const buckets = quotas.map(({ bucket, quota }) => ({ b: bucket, q: quota }));
      return read(all, lease, request, [buckets, request.except ?? []]);
    },

    only: (lease, request, ids) => read(only, lease, request, [lease.buckets, ids]),

    fitting,

    async hold({ destination, token }, { messages, buckets }) {
      const { rows } = await database.query(hold, [
        destination,
        JSON.stringify(buckets.map(({ bucket }) => bucket)),
        token,
        JSON.stringify(buckets.map(({ bucket, lowest }) => ({ b: bucket, s: lowest }))),
        JSON.stringify(messages.map(({ id, partitionKey }) => ({ id, k: partitionKey }))),
      ]);
      return Number(rows[0]?.['count'] ?? 0);
    },
  };
}

/** Where the exact bytes are more than the server reckoned, the bound is kept here. */
function fitting(rows: readonly DriverRow[], maxBytes: number): readonly DriverRow[] {
  let sum = 0;
  const within: DriverRow[] = [];
  for (const row of rows) {
    const payload = row['payload'] as string | null;
    if (payload === null) break;
    const bytes = Buffer.byteLength(payload);
    sum += bytes;
    if (sum > maxBytes && within.length > 0) break;
    within.push({ ...row, bytes });
  }
  return within;
}
