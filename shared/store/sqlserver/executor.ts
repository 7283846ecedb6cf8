import type sql from 'mssql';
import type { DatabaseResult } from './database.ts';

/** The part of an mssql `Request` that is used. */
export interface RequestLike {
  input(name: string, value: unknown): unknown;
  query(text: string): Promise<{ readonly recordsets: unknown }>;
}

/** Anything that makes requests: an mssql `Transaction`, `ConnectionPool` or `PreparedStatement`'s parent. */
export interface RequestMaker {
  request(): RequestLike | sql.Request;
}

/** Runs a statement with its values bound as `@p1`, `@p2`, …; mssql works their types out from the values. */
export async function runRequest(
  request: RequestLike | sql.Request,
  text: string,
  values: readonly unknown[] = [],
): Promise<DatabaseResult> {
  const maker = request as RequestLike;
  for (const [index, value] of values.entries()) maker.input(`p${index + 1}`, value ?? null);
  const { recordsets } = await maker.query(text);
  const sets = (Array.isArray(recordsets) ? recordsets : []) as Record<string, unknown>[][];
  return { rows: sets.at(-1) ?? [], sets };
}
