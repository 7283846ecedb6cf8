import type { Dialect, Run } from './dialect.ts';
import { binder, complete, conditions, insertRows, normalised, touched, writtenBy } from './statements.ts';
import { type Column, kindOf, type Table, tableColumns, tableOrder } from './tables.ts';
import type { Comparison, Value } from './values.ts';

/** Equal to each; a list means one of them, `null` none. */
export type Where<T extends Table> = {
  readonly [C in Column<T>]?: Value | Comparison | readonly (string | number)[];
};
export type Columns<T extends Table> = { readonly [C in Column<T>]?: Value };
export type Row<T extends Table> = { readonly [C in Column<T>]: unknown };

/** Looks at tables and changes them, without SQL. */
export interface TableGateway {
  /**
   * Rows, in the table's own order unless told. Booleans are booleans, 64-bit numbers their digits, headers parsed, GUIDs in small
   * letters, instants ISO 8601 with milliseconds; one that stands for "never" is null.
   */
  rows<T extends Table, C extends Column<T> = Column<T>>(
    table: T,
    where?: Where<T>,
    options?: { readonly columns?: readonly C[]; readonly orderBy?: readonly Column<T>[] },
  ): Promise<Pick<Row<T>, C>[]>;
  /** Seconds from the database's present to an instant of each row; null where there is none. */
  secondsLeft<T extends Table>(table: T, column: Column<T>, where?: Where<T>): Promise<(number | null)[]>;
  count<T extends Table>(table: T, where?: Where<T>): Promise<number>;
  /** Inserts a row; what it must have and isn't given is made up. Answers its id, empty where the table has none. */
  insert<T extends Table>(table: T, columns?: Columns<T>): Promise<string>;
  /** The same for many of the same columns, in a few statements. */
  insertMany<T extends Table>(table: T, rows: readonly Columns<T>[]): Promise<void>;
  /** Answers how many rows were changed. */
  update<T extends Table>(table: T, set: Columns<T>, where?: Where<T>): Promise<number>;
  /** Writes rows as they are, which locks them in a transaction. Answers how many. */
  touch<T extends Table>(table: T, where?: Where<T>): Promise<number>;
  /** Answers how many rows were removed. */
  remove<T extends Table>(table: T, where?: Where<T>): Promise<number>;
  /** Empties tables; all of them, the effects too, where none is named. */
  clear(...tables: readonly Table[]): Promise<void>;
}

/** The gateway over whatever runs statements: a pool, or one transaction. */
export function createGateway(dialect: Dialect, run: Run): TableGateway {
  const change = async (text: string, values: unknown[]): Promise<number> => {
    const rows = await run(dialect.counted(text), values);
    return typeof rows[0]?.['changed'] === 'number' ? rows[0]['changed'] : rows.length;
  };
  return {
    rows: async (table, where = {}, options = {}) => {
      const { values, bind } = binder(dialect);
      const columns: readonly string[] = options.columns ?? tableColumns[table];
      // By other names than the columns': SQL Server would order by what was selected, and a number's text is that.
      const picked = columns.map(
        (name) =>
          `${dialect.selected(dialect.column(table, name), kindOf(table, name))} AS ${dialect.as(`_${name}`)}`,
      );
      const order = (options.orderBy ?? tableOrder[table]).map((name) => dialect.column(table, name));
      const found = await run(
        `SELECT ${picked.join(', ')} FROM ${dialect.table(table)}${conditions(dialect, table, where, bind)} ORDER BY ${order.join(', ')}`,
        values,
      );
      return found.map((row) => normalised(table, columns, row)) as never;
    },
    secondsLeft: async (table, column, where = {}) => {
      const { values, bind } = binder(dialect);
      const order = tableOrder[table].map((name) => dialect.column(table, name));
      const found = await run(
        `SELECT ${dialect.secondsUntil(dialect.column(table, column))} AS ${dialect.as('seconds')} FROM ${dialect.table(table)}${conditions(dialect, table, where, bind)} ORDER BY ${order.join(', ')}`,
        values,
      );
      return found.map(({ seconds }) => (seconds === null ? null : Number(seconds)));
    },
    count: async (table, where = {}) => {
      const { values, bind } = binder(dialect);
      const [row] = await run(
        `SELECT count(*) AS ${dialect.as('count')} FROM ${dialect.table(table)}${conditions(dialect, table, where, bind)}`,
        values,
      );
      return Number(row?.['count']);
    },
    insert: async (table, columns = {}) => {
      const row = complete(table, columns);
      await insertRows(dialect, run, table, [row]);
      return typeof row['id'] === 'string' ? row['id'] : '';
    },
    insertMany: async (table, rows) =>
      insertRows(
        dialect,
        run,
        table,
        rows.map((row) => complete(table, row)),
      ),
    update: async (table, set, where = {}) => {
      const { values, bind } = binder(dialect);
      const written = writtenBy(dialect, table, set, bind);
      const assigned = Object.entries(written).map(([name, value]) => `${name} = ${value}`);
      return await change(
        `UPDATE ${dialect.table(table)} SET ${assigned.join(', ')}${conditions(dialect, table, where, bind)}`,
        values,
      );
    },
    touch: async (table, where = {}) => {
      const { values, bind } = binder(dialect);
      const column = dialect.target(touched[table]);
      return await change(
        `UPDATE ${dialect.table(table)} SET ${column} = ${column}${conditions(dialect, table, where, bind)}`,
        values,
      );
    },
    remove: async (table, where = {}) => {
      const { values, bind } = binder(dialect);
      return await change(
        `DELETE FROM ${dialect.table(table)}${conditions(dialect, table, where, bind)}`,
        values,
      );
    },
    clear: async (...tables) => {
      const named = tables.length > 0 ? tables : (Object.keys(tableColumns) as Table[]);
      await run(dialect.emptied(named.map((table) => dialect.table(table))), []);
    },
  };
}
