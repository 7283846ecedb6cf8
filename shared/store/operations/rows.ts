/** One answered row, read by column and type. What isn't as expected is a fault of ours, and says which column. */
export class Row {
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(values: Readonly<Record<string, unknown>>) {
    this.#values = values;
  }

  /** Text, a number or a bigint's digits, as text. */
  text(column: string): string {
    const value = this.#values[column];
    if (typeof value === 'string') return value;
    if (typeof value === 'number' || typeof value === 'bigint') return String(value);
    throw new Error(`column ${column} of an operator's query is ${value === null ? 'null' : typeof value}`);
  }

  textOrNull(column: string): string | null {
    return this.#values[column] == null ? null : this.text(column);
  }

  /** A count or another number that is small by its nature. */
  number(column: string): number {
    return Number(this.text(column));
  }

  numberOrNull(column: string): number | null {
    return this.#values[column] == null ? null : this.number(column);
  }

  flag(column: string): boolean {
    return this.#values[column] === true;
  }

  raw(column: string): unknown {
    return this.#values[column] ?? null;
  }
}

/** What a statement answered, as far as it is looked at here. */
export interface Answered {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** The rows of an answer. */
export function rowsOf(result: Answered): readonly Row[] {
  return result.rows.map((row) => new Row(row));
}
