/** A row as a driver gives it. */
export type DriverRow = Readonly<Record<string, unknown>>;

/** Whether a column says yes: PostgreSQL answers a boolean, a batch on SQL Server often a 1. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 1;
}

/** A column's text, or null. */
export function textOrNull(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

/** A column's number, or undefined where the database answered null, or no row. */
export function numberOrUndefined(value: unknown): number | undefined {
  return value === null || value === undefined ? undefined : Number(value);
}
