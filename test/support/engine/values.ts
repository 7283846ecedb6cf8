const seconds = Symbol('seconds from now');
const compare = Symbol('compare');

/** An instant, so many seconds from the database's own present. */
export interface FromNow {
  readonly [seconds]: number;
}

/** What a column can be set to. Objects and lists only where the column holds JSON. */
export type Value =
  | string
  | number
  | boolean
  | null
  | Buffer
  | FromNow
  | readonly string[]
  | { readonly [name: string]: string };

/** A condition other than equality. */
export interface Comparison {
  readonly [compare]: '<' | '>' | '<>';
  readonly value: Value;
}

/** By the database's clock; negative for the past. */
export function secondsFromNow(count: number): FromNow {
  return { [seconds]: count };
}

/** Days before the database's present. */
export function daysAgo(count: number): FromNow {
  return secondsFromNow(-count * 86_400);
}

/** Other than this; `not(null)`: has a value. */
export function not(value: Value): Comparison {
  return { [compare]: '<>', value };
}

/** Less than, or before. */
export function below(value: number | FromNow): Comparison {
  return { [compare]: '<', value };
}

/** More than, or after. */
export function above(value: number | FromNow): Comparison {
  return { [compare]: '>', value };
}

/** The seconds of an instant from now; undefined for any other value. */
export function secondsOf(value: unknown): number | undefined {
  return typeof value === 'object' && value !== null && seconds in value
    ? (value as FromNow)[seconds]
    : undefined;
}

/** The comparison; undefined where the value itself is meant. */
export function comparisonOf(value: unknown): Comparison | undefined {
  return typeof value === 'object' && value !== null && compare in value ? (value as Comparison) : undefined;
}

/** The sign that stands between column and value. */
export function sign(comparison: Comparison): '<' | '>' | '<>' {
  return comparison[compare];
}
