import type { Purgeable } from '../../../operations/requests.ts';
import type { Names } from '../names.ts';
import { scanLimit } from './operations-shared.ts';

interface Ended {
  readonly table: string;
  readonly id: string;
  readonly ended: string;
  readonly where: string;
}

function ended(names: Names, from: Purgeable): Ended {
  if (from === 'receipts') {
    return { table: names.receipts, id: 'digest', ended: 'received_at_utc', where: 'true' };
  }
  // The inbox's index over ended rows does not name the state: no predicate there does.
  const where = from === 'outbox' ? 'state IN (2, 4)' : 'processed_at_utc IS NOT NULL AND state IN (2, 4)';
  return {
    table: from === 'outbox' ? names.outbox : names.inbox,
    id: 'id',
    ended: 'processed_at_utc',
    where,
  };
}

/**
 * Removes one batch of ended rows, oldest end first. Terminal states only, whatever the age of the others. Rows that
 * somebody has locked are stepped over: retention waits for nobody, and nobody for it. `$1` days, `$2` rows.
 */
export function purgeBatch(names: Names, from: Purgeable): string {
  const { table, id, ended: column, where } = ended(names, from);
  // A data-modifying statement over a LIMIT with SKIP LOCKED must not have its subquery run twice: MATERIALIZED.
  return `
WITH batch AS MATERIALIZED (
  SELECT ${id} FROM ${table}
  WHERE ${where} AND ${column} < now() - $1::float8 * interval '1 day'
  ORDER BY ${column} LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM ${table} AS t USING batch AS b WHERE t.${id} = b.${id}`;
}

/** How many rows a purge would remove, counted up to a limit. `$1` days. */
export function purgeable(names: Names, from: Purgeable): string {
  const { table, ended: column, where } = ended(names, from);
  return `
SELECT count(*) AS count FROM (
  SELECT 1 FROM ${table} WHERE ${where} AND ${column} < now() - $1::float8 * interval '1 day' LIMIT ${scanLimit}
) AS s`;
}
