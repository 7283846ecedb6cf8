import { randomUUID } from 'node:crypto';
import type { Bind, Dialect, Run } from './dialect.ts';
import { type Kind, kindOf, type Table } from './tables.ts';
import { comparisonOf, secondsFromNow, secondsOf, sign, type Value } from './values.ts';

/** A statement's values, each with its placeholder. */
export function binder(dialect: Dialect): { readonly values: unknown[]; readonly bind: Bind } {
  const values: unknown[] = [];
  return { values, bind: (value) => dialect.placeholder(values.push(value)) };
}

/** A column to write as it is, which changes nothing and locks the row. */
export const touched: Readonly<Record<Table, string>> = {
  outbox: 'correlation_id',
  archive: 'correlation_id',
  inbox: 'correlation_id',
  leases: 'lock_token',
  lanes: 'paused_by',
  keys: 'lock_token',
  inboxLanes: 'paused_by',
  receipts: 'received_at_utc',
  workers: 'last_cycle_at_utc',
  effects: 'id',
};

/** The WHERE clause, empty where nothing is asked. */
export function conditions(dialect: Dialect, table: Table, where: object, bind: Bind): string {
  const tests = Object.entries(where).flatMap(([name, wanted]) => {
    if (wanted === undefined) return [];
    const column = dialect.column(table, name);
    const kind = kindOf(table, name);
    const comparison = comparisonOf(wanted);
    const value = comparison === undefined ? wanted : comparison.value;
    if (value === null) return [`${column} IS ${comparison === undefined ? '' : 'NOT '}NULL`];
    if (Array.isArray(value)) {
      if (value.length === 0) return ['1 = 0'];
      return [`${column} IN (${value.map((one) => expressionOf(dialect, one, kind, bind)).join(', ')})`];
    }
    return [
      `${column} ${comparison === undefined ? '=' : sign(comparison)} ${expressionOf(dialect, value, kind, bind)}`,
    ];
  });
  return tests.length === 0 ? '' : ` WHERE ${tests.join(' AND ')}`;
}

/** A value in a statement, bound. */
export function expressionOf(dialect: Dialect, value: Value, kind: Kind, bind: Bind): string {
  // A null without a type is refused for some columns.
  if (value === null) return 'NULL';
  const seconds = secondsOf(value);
  return seconds === undefined ? bind(dialect.bound(value, kind)) : dialect.fromNow(seconds, bind);
}

/** What is written to each column, the engine's own ones with it. */
export function writtenBy(dialect: Dialect, table: Table, set: object, bind: Bind): Record<string, string> {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(set)) {
    if (value !== undefined) given[name] = expressionOf(dialect, value, kindOf(table, name), bind);
  }
  const own = Object.entries(given).map(([name, value]) => [dialect.target(name), value]);
  return { ...Object.fromEntries(own), ...dialect.derived(table, given) };
}

const made: Partial<Record<Table, () => Readonly<Record<string, Value>>>> = {
  outbox: () => ({ ...madeMessage(), destination: 'orders' }),
  archive: () => ({ ...madeMessage(), destination: 'orders', state: 2, retry_count: 0, max_retries: 5 }),
  inbox: () => ({ ...madeMessage(), source: 'shop', external_message_id: randomUUID() }),
  keys: () => ({ consumer: '', source: 'shop' }),
  inboxLanes: () => ({ consumer: '' }),
};

function madeMessage(): Record<string, Value> {
  return {
    id: randomUUID(),
    message_type: 'order.placed',
    payload: '{}',
    created_at_utc: secondsFromNow(0),
  };
}

/** What the caller gave, and what the row must have besides. */
export function complete(table: Table, columns: object): Record<string, Value> {
  return { ...made[table]?.(), ...columns };
}

/** SQL Server takes 2,100 values and 1,000 rows in one statement. */
const mostValues = 1_800;

/** Inserts rows of the same columns, as many in a statement as fit. */
export async function insertRows(
  dialect: Dialect,
  run: Run,
  table: Table,
  rows: readonly Record<string, Value>[],
): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  // An instant from now may take two.
  const step = Math.max(1, Math.min(900, Math.floor(mostValues / (2 * Object.keys(first).length))));
  for (let from = 0; from < rows.length; from += step) {
    const { values, bind } = binder(dialect);
    const written = rows.slice(from, from + step).map((row) => writtenBy(dialect, table, row, bind));
    const names = Object.keys(written[0] ?? {});
    const tuples = written.map((row) => `(${names.map((name) => row[name] ?? 'NULL').join(', ')})`);
    await run(
      `INSERT INTO ${dialect.table(table)} (${names.join(', ')}) VALUES ${tuples.join(', ')}`,
      values,
    );
  }
}

/** A row, its columns under `_name`, in the form that is the same on both engines. */
export function normalised(
  table: Table,
  columns: readonly string[],
  row: Record<string, unknown>,
): Record<string, unknown> {
  return Object.fromEntries(
    columns.map((name) => [name, normalValue(row[`_${name}`] ?? null, kindOf(table, name))]),
  );
}

function normalValue(value: unknown, kind: Kind): unknown {
  if (value === null) return null;
  switch (kind) {
    case 'boolean':
      return value === true || value === 1;
    case 'number':
      return Number(value);
    case 'digits':
    case 'text':
      return String(value);
    case 'guid':
      return String(value).toLowerCase();
    case 'json':
      return typeof value === 'string' ? JSON.parse(value) : value;
    default:
      return value;
  }
}
