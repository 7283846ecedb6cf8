import { countLimit } from '../../../operations/limits.ts';
import { now } from './time.ts';

/** The limit of a scan that is counted. */
export const scanLimit = countLimit + 1;

/** The buckets of the outbox, as a table of one column. */
export const buckets = `(VALUES ${Array.from({ length: 64 }, (_, bucket) => `(${bucket})`).join(', ')}) AS b([Bucket])`;

/** A condition as a column that JavaScript sees as true or false. */
export function flag(condition: string): string {
  return `CONVERT(BIT, CASE WHEN ${condition} THEN 1 ELSE 0 END)`;
}

/** Whole seconds since an instant, 0 or more; null for null. */
export function age(since: string): string {
  return `CASE WHEN ${since} >= ${now} THEN 0 ELSE DATEDIFF_BIG(second, ${since}, ${now}) END`;
}

/** Ids out of a JSON array in `parameter`. */
export function idsOf(parameter: string): string {
  return `OPENJSON(${parameter}) WITH ([id] UNIQUEIDENTIFIER '$') AS d`;
}

/**
 * A loose scan: the distinct values of an index's leading column, one probe each, whatever the number of rows. `probe`
 * sets `@next` to the lowest value above `@place`, and `keep` notes it; `@found` counts up to `limit`.
 */
export function looseScan(scan: {
  readonly first: string;
  readonly probe: string;
  readonly keep: string;
  readonly limit: string;
}): string {
  return `SET @place = ${scan.first};
WHILE (SELECT COUNT(*) FROM @lanes) < ${scan.limit}
BEGIN
  SET @next = NULL;
  ${scan.probe}
  IF @next IS NULL BREAK;
  ${scan.keep}
  SET @place = @next;
END;`;
}
