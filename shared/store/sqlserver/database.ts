/** What a statement, or several in one round trip, answered. */
export interface DatabaseResult {
  /** The rows of the last result set; none where there is no result set. */
  readonly rows: Record<string, unknown>[];
  /** Every result set, in order. */
  readonly sets: readonly Record<string, unknown>[][];
}

/**
 * Runs a statement, or several as one batch, on whatever connection is free, on autocommit and at READ COMMITTED.
 * Values are bound as `@p1`, `@p2`, …: strings as NVARCHAR, whole numbers as INT or BIGINT, others as FLOAT, booleans as
 * BIT, buffers as VARBINARY. Lists go in as one JSON text. Each batch is an `sp_executesql`, so a SET in it ends with it.
 */
export interface Database {
  query(text: string, values?: unknown[]): Promise<DatabaseResult>;
}
