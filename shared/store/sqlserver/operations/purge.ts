import type { Purges } from '../../operations/purging.ts';
import { rowsOf } from '../../operations/rows.ts';
import { retried } from '../inbox/retry.ts';
import type { Names } from '../names.ts';
import { purgeable, purgeBatch, purgeLock } from '../sql/operations-purge.ts';
import type { OperationsSource } from './session.ts';

/** Removal of ended rows on SQL Server, one purge at a time. */
export function purgesOf(source: OperationsSource, names: Names): Purges {
  return {
    // Few enough that the rows' locks are never made one of the whole table.
    batchRows: 500,

    async count(from, olderThanDays) {
      const [row] = rowsOf(await source.query(purgeable(names, from), [olderThanDays]));
      return row?.number('count') ?? 0;
    },

    async remove(from, olderThanDays, size) {
      const values = [olderThanDays, size, purgeLock(names, from)];
      const [row] = rowsOf(await retried(() => source.query(purgeBatch(names, from), values)));
      return { removed: row?.number('removed') ?? 0, busy: row?.flag('busy') ?? false };
    },
  };
}
