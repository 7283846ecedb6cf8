/** What a statement answered. */
export interface DatabaseResult {
  readonly rows: Record<string, unknown>[];
  readonly rowCount: number | null;
}

/**
 * Runs single statements on autocommit, each on whatever connection is free. A `pg.Pool` is one; Relaybox's own
 * connections add staleness checks, deadlines and rotation of secrets.
 */
export interface Database {
  query(text: string, values?: unknown[]): Promise<DatabaseResult>;
}
