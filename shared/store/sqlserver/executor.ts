import type sql from 'mssql';
import type { DatabaseResult } from './database.ts';

/** The part of an mssql `Request` that is used. */
export interface RequestLike {
  input(name: string, value: unknown): unknown;
  /** What was given to `input`, with the type that the driver made of it. */
  readonly parameters?: Readonly<Record<string, { length?: unknown }>>;
  query(text: string): Promise<{ readonly recordsets: unknown }>;
}

/** Anything that makes requests: an mssql `Transaction`, `ConnectionPool` or `PreparedStatement`'s parent. */
export interface RequestMaker {
  request(): RequestLike | sql.Request;
}

/** UTF-16 code units up to which a text is no NVARCHAR(MAX). */
const SHORT = 4_000;

/**
 * Runs a statement with its values bound as `@p1`, `@p2`, …; mssql works their types out from the values. A text would be
 * declared by its own length, and the server keeps a plan for each declaration: so all that aren't MAX are declared alike.
 */
export async function runRequest(
  request: RequestLike | sql.Request,
  text: string,
  values: readonly unknown[] = [],
): Promise<DatabaseResult> {
  const maker = request as RequestLike;
  for (const [index, value] of values.entries()) {
    const name = `p${index + 1}`;
    maker.input(name, value ?? null);
    const parameter = maker.parameters?.[name];
    const short = typeof value === 'string' ? value.length <= SHORT : (value ?? null) === null;
    if (parameter !== undefined && short) parameter.length = SHORT;
  }
  const { recordsets } = await maker.query(text);
  const sets = (Array.isArray(recordsets) ? recordsets : []) as Record<string, unknown>[][];
  return { rows: sets.at(-1) ?? [], sets };
}
