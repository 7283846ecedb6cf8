import { defaults } from '../../../delivery/defaults.ts';

/** All buckets as a derived table of one column, `[Bucket]`. */
export const BUCKETS = `(VALUES ${Array.from({ length: defaults.buckets }, (_, bucket) => `(${bucket})`).join(', ')}) AS n ([Bucket])`;

/** The buckets of a JSON array of numbers, as a subquery. */
export function bucketsIn(parameter: string): string {
  return `(SELECT CONVERT(TINYINT, [value]) FROM OPENJSON(${parameter}))`;
}
