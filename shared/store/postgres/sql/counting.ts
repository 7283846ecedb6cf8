/**
 * A counter and one. It stays at the largest number that the column holds: another program's row may be there already,
 * and an overflow would end the statement for all rows of its batch.
 */
export function oneMore(counter: string): string {
  return `least(${counter}, 2147483646) + 1`;
}
