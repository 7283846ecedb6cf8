import { countLimit } from '../../../operations/limits.ts';

export { countLimit } from '../../../operations/limits.ts';

/** The limit of a scan that is counted. */
export const scanLimit = countLimit + 1;

/** An instant as ISO 8601 text. Read as text, it can't be taken for something to compute with; infinity stays legible. */
export function iso(column: string): string {
  return `CASE WHEN isfinite(${column}) THEN to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') ELSE ${column}::text END`;
}

/** Whole seconds since an instant, 0 or more. Null for infinity: before PostgreSQL 17 taking it from an instant is an error. */
export function age(since: string): string {
  return `CASE WHEN isfinite(${since}) THEN floor(greatest(0, extract(epoch FROM now() - ${since})))::float8 END`;
}

/**
 * A loose index scan: the distinct leading values of an index, one probe each, whatever the number of rows.
 * The predicate, over the alias `t`, must be the partial index's own, or the planner does
 * not use it.
 */
export function looseScan(scan: {
  readonly name: string;
  readonly table: string;
  readonly columns: readonly string[];
  readonly where: string;
}): string {
  const { name, table, columns, where } = scan;
  const list = columns.join(', ');
  // The next place comes from a LATERAL: it ends the recursion by having no row, and takes several columns.
  return `${name} AS (
  (SELECT ${list} FROM ${table} AS t WHERE ${where} ORDER BY ${list} LIMIT 1)
  UNION ALL
  SELECT n.* FROM ${name} AS last CROSS JOIN LATERAL (
    SELECT ${list} FROM ${table} AS t
    WHERE ${where} AND (${columns.map((column) => `t.${column}`).join(', ')}) > (${columns.map((column) => `last.${column}`).join(', ')})
    ORDER BY ${list} LIMIT 1
  ) AS n
)`;
}
