/**
 * A counter and one. It stays at the largest number that the column holds: another program's row may be there already,
 * and an overflow would end the statement for all rows of its batch.
 */
export function oneMore(counter: string): string {
  return `CASE WHEN ISNULL(${counter}, 0) < 2147483647 THEN ISNULL(${counter}, 0) + 1 ELSE 2147483647 END`;
}
