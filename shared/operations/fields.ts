import { RequestRefused } from './errors.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Reads the fields of a request one by one, and refuses what is wrong with the field's name. A null counts as not
 * given. A field that nobody read is a misspelt one: `done` refuses it, since a lost `dryRun` would do harm.
 */
export class Fields {
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #command: string;
  readonly #read = new Set<string>(['command']);

  constructor(command: string, values: Readonly<Record<string, unknown>>) {
    this.#command = command;
    this.#values = values;
  }

  /** The refusal of a field, to be thrown. */
  refuse(name: string, must: string): RequestRefused {
    return new RequestRefused(`${this.#command}: ${name} must be ${must}`);
  }

  has(name: string): boolean {
    return this.#take(name) !== undefined;
  }

  /** A text of 1 to `max` characters, or null where it isn't given. */
  optionalText(name: string, max: number, min = 1): string | null {
    const value = this.#take(name);
    if (value === undefined) return null;
    // NUL is the one character that PostgreSQL's text cannot hold.
    if (typeof value !== 'string' || value.length < min || value.length > max || value.includes('\0')) {
      throw this.refuse(name, `text of ${min} to ${max} characters, without NUL`);
    }
    return value;
  }

  text(name: string, max: number): string {
    const value = this.optionalText(name, max);
    if (value === null) throw this.refuse(name, 'given');
    return value;
  }

  flag(name: string): boolean {
    const value = this.#take(name);
    if (value === undefined) return false;
    if (typeof value !== 'boolean') throw this.refuse(name, 'true or false');
    return value;
  }

  integer(name: string, min: number, max: number, otherwise: number): number {
    const value = this.#take(name);
    if (value === undefined) return otherwise;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
      throw this.refuse(name, `a whole number from ${min} to ${max}`);
    }
    return value;
  }

  optionalInteger(name: string, min: number, max: number): number | null {
    return this.has(name) ? this.integer(name, min, max, min) : null;
  }

  oneOf<Choice extends string>(name: string, choices: readonly Choice[]): Choice {
    const value = this.#take(name);
    const choice = choices.find((each) => each === value);
    if (choice === undefined) throw this.refuse(name, `one of ${choices.join(', ')}`);
    return choice;
  }

  uuid(name: string): string {
    const value = this.#take(name);
    if (typeof value !== 'string' || !uuid.test(value)) throw this.refuse(name, 'a UUID');
    return value.toLowerCase();
  }

  uuids(name: string, max: number): readonly string[] {
    const value = this.#take(name);
    if (!Array.isArray(value) || value.length === 0 || value.length > max) {
      throw this.refuse(name, `a list of 1 to ${max} UUIDs`);
    }
    const ids = value.map((each: unknown) => {
      if (typeof each !== 'string' || !uuid.test(each)) throw this.refuse(name, 'a list of UUIDs');
      return each.toLowerCase();
    });
    return [...new Set(ids)];
  }

  /** Refuses fields that no reader asked for. */
  done(): void {
    const unknown = Object.keys(this.#values).filter((name) => !this.#read.has(name));
    if (unknown.length === 0) return;
    const known = [...this.#read].filter((name) => name !== 'command').sort();
    throw new RequestRefused(
      `${this.#command}: unknown field ${unknown.join(', ')}; it takes ${known.join(', ') || 'none'}`,
    );
  }

  #take(name: string): unknown {
    this.#read.add(name);
    const value = this.#values[name];
    return value === null ? undefined : value;
  }
}
