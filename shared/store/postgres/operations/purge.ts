import type { Purges } from '../../operations/purging.ts';
import { rowsOf } from '../../operations/rows.ts';
import type { Names } from '../names.ts';
import { purgeable, purgeBatch } from '../sql/operations-purge.ts';
import { inTransaction, type OperationsSource, reading, writing } from './session.ts';

/** Removal of ended rows on PostgreSQL. What another purge holds is stepped over. */
export function purgesOf(source: OperationsSource, names: Names): Purges {
  return {
    batchRows: 1000,

    async count(from, olderThanDays) {
      const rows = await inTransaction(source, reading, async (client) =>
        rowsOf(await client.query(purgeable(names, from), [olderThanDays])),
      );
      return rows[0]?.number('count') ?? 0;
    },

    async remove(from, olderThanDays, size) {
      const { rowCount } = await inTransaction(source, writing, (client) =>
        client.query(purgeBatch(names, from), [olderThanDays, size]),
      );
      return { removed: rowCount ?? 0, busy: false };
    },
  };
}
