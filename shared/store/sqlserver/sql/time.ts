/**
 * The server's instant at which the statement began, in UTC as the seed's columns have it. SQL Server works it out once
 * per statement, so a fence by time is as of then; the token beside it is looked at under the row's lock.
 */
export const now = 'TODATETIMEOFFSET(SYSUTCDATETIME(), 0)';

/**
 * So many milliseconds from now, over the expression of a number. In two steps, since DATEADD takes an INT: of
 * milliseconds alone that would be 24 days.
 */
export function later(ms: string): string {
  const whole = `CONVERT(BIGINT, ${ms})`;
  return `DATEADD(millisecond, CONVERT(INT, ${whole} % 1000), DATEADD(second, CONVERT(INT, ${whole} / 1000), ${now}))`;
}

/** A time that has always passed. */
export const never = "CONVERT(DATETIMEOFFSET, '0001-01-01T00:00:00+00:00')";
