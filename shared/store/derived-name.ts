import { createHash } from 'node:crypto';

/** How long a name may be, by what the server counts. */
export interface NameLimit {
  readonly most: number;
  /** A name's length, as the server counts it. */
  readonly size: (name: string) => number;
}

/**
 * A name made of a table's, e.g. an index's. A long one is cut, and gets a digest of the whole, so that two cut ones stay
 * apart: PostgreSQL would cut it in silence.
 */
export function derivedName(
  prefix: string,
  table: string,
  suffix: string,
  { most, size }: NameLimit,
): string {
  const whole = `${prefix}${table}${suffix}`;
  if (size(whole) <= most) return whole;
  const tail = `_${createHash('sha256').update(whole).digest('hex').slice(0, 8)}${suffix}`;
  let head = `${prefix}${table}`;
  while (size(head + tail) > most) head = [...head].slice(0, -1).join('');
  return head + tail;
}
