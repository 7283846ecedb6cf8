import type { Kind, Table } from './tables.ts';
import type { Value } from './values.ts';

/** How an engine writes what the gateway means. */
export interface Dialect {
  table(table: Table): string;
  /** A column to write to. */
  target(column: string): string;
  /** A column, or what stands for it, in a condition or an order. */
  column(table: Table, column: string): string;
  /** The same as the answer brings it. */
  selected(expression: string, kind: Kind): string;
  as(column: string): string;
  placeholder(place: number): string;
  fromNow(seconds: number, bind: Bind): string;
  secondsUntil(expression: string): string;
  /** A value as the driver takes it. */
  bound(value: Value, kind: Kind): unknown;
  /** Columns of the engine's own that follow from others, as expressions over the others' placeholders. */
  derived(table: Table, written: Readonly<Record<string, string>>): Readonly<Record<string, string>>;
  /** Makes a change answer one row per row changed, or one row that names their number as `changed`. */
  counted(change: string): string;
  emptied(tables: readonly string[]): string;
}

export type Bind = (value: unknown) => string;
export type Run = (text: string, values: unknown[]) => Promise<readonly Record<string, unknown>[]>;
