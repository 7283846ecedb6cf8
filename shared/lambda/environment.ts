import { ConfigurationError } from '../message/errors.ts';

/** Environment variables as Lambda gives them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A JSON object of a variable, with the path that names it in an error. */
export interface Fields {
  readonly path: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/**
 * Reads variables and collects what is wrong with them, so that one error names every fault of a deployment.
 * A problem says which variable and what it must be, and never what it is: the value may be a secret.
 */
export class EnvironmentReader {
  readonly #env: Environment;
  readonly #problems: string[] = [];

  constructor(env: Environment) {
    this.#env = env;
  }

  /** Notes a fault. `where` is a variable, or a variable and a field in it. */
  problem(where: string, must: string): undefined {
    this.#problems.push(`${where} must be ${must}`);
    return undefined;
  }

  /** Throws `ConfigurationError` where anything was wrong. */
  finish(): void {
    if (this.#problems.length === 0) return;
    throw new ConfigurationError(`The function's environment is not usable: ${this.#problems.join('; ')}`);
  }

  /** A variable's text; one that is empty counts as not set, as in every template language. */
  text(name: string): string | undefined {
    return this.#env[name] || undefined;
  }

  integer(name: string, from: number, to: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = /^\d+$/.test(text.trim()) ? Number(text) : Number.NaN;
    return value >= from && value <= to ? value : this.problem(name, `a whole number from ${from} to ${to}`);
  }

  choice<const T extends string>(name: string, choices: readonly T[]): T | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    return choices.find((choice) => choice === text) ?? this.problem(name, `one of ${choices.join(', ')}`);
  }

  /** A variable that holds a JSON object. */
  object(name: string): Fields | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    try {
      return this.fields(name, JSON.parse(text));
    } catch {
      return this.problem(name, 'a JSON object');
    }
  }

  /** A value inside a variable that must be an object itself. */
  fields(path: string, value: unknown): Fields | undefined {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return this.problem(path, 'a JSON object');
    }
    return { path, values: { ...value } };
  }

  /** A field that must be a text, where it is there. */
  textField(fields: Fields, name: string): string | undefined {
    const value = fields.values[name];
    if (value === undefined || (typeof value === 'string' && value !== '')) return value;
    return this.problem(`${fields.path}.${name}`, 'a text that is not empty');
  }

  /** A field that must be a number in the range, where it is there. */
  numberField(fields: Fields, name: string, from: number, to: number): number | undefined {
    const value = fields.values[name];
    if (value === undefined) return undefined;
    if (typeof value === 'number' && value >= from && value <= to) return value;
    return this.problem(`${fields.path}.${name}`, `a number from ${from} to ${to}`);
  }

  /** A field that must be true or false, where it is there. */
  booleanField(fields: Fields, name: string): boolean | undefined {
    const value = fields.values[name];
    if (value === undefined || typeof value === 'boolean') return value;
    return this.problem(`${fields.path}.${name}`, 'true or false');
  }

  /** A field that must be one of the choices, where it is there. */
  choiceField<const T extends string>(fields: Fields, name: string, choices: readonly T[]): T | undefined {
    const value = fields.values[name];
    if (value === undefined) return undefined;
    return (
      choices.find((choice) => choice === value) ??
      this.problem(`${fields.path}.${name}`, `one of ${choices.join(', ')}`)
    );
  }

  /** Names every field that is not known: a typing error in a setting must not pass in silence. */
  only(fields: Fields, known: readonly string[]): void {
    for (const name of Object.keys(fields.values)) {
      if (!known.includes(name))
        this.problem(`${fields.path}.${name}`, `left out: known are ${known.join(', ')}`);
    }
  }
}
