import { UNREADABLE_TYPE } from '../message/envelope/names.ts';
import { ConfigurationError } from '../message/errors.ts';

/** What an option must be. */
export interface Rule {
  /** In words, e.g. `a whole number from 1 to 100`. */
  readonly must: string;
  readonly holds: (value: unknown) => boolean;
}

/** A whole number in a range. */
export function whole(from: number, to: number): Rule {
  return {
    must: `a whole number from ${from} to ${to}`,
    holds: (value) => Number.isInteger(value) && within(value, from, to),
  };
}

/** A number in a range. */
export function between(from: number, to: number): Rule {
  return { must: `a number from ${from} to ${to}`, holds: (value) => within(value, from, to) };
}

/** One of some texts. */
export function oneOf(...choices: readonly string[]): Rule {
  return {
    must: `one of ${choices.join(', ')}`,
    holds: (value) => typeof value === 'string' && choices.includes(value),
  };
}

/** A text of so many characters. */
export function text(from: number, to: number): Rule {
  return {
    must: `a text of ${from} to ${to} characters`,
    holds: (value) => typeof value === 'string' && value.length >= from && value.length <= to,
  };
}

/** True or false. */
export const flag: Rule = { must: 'true or false', holds: (value) => typeof value === 'boolean' };

/** A function. */
export const callable: Rule = { must: 'a function', holds: (value) => typeof value === 'function' };

/** A Standard Schema. */
export const schema: Rule = {
  must: 'a Standard Schema, as zod, valibot and arktype make them',
  holds: (value) =>
    // Arktype's are functions.
    (typeof value === 'object' || typeof value === 'function') &&
    value !== null &&
    '~standard' in value &&
    typeof (value['~standard'] as { readonly validate?: unknown } | null)?.validate === 'function',
};

/** Waits that grow, each part on its own. */
export const backoff: Readonly<Record<string, Rule>> = {
  firstSeconds: between(0, 86_400),
  factor: between(1, 100),
  maxSeconds: between(0, 604_800),
};

/** What several kinds of function take. */
export const common = {
  batchSize: whole(1, 10_000),
  parallelism: whole(1, 100),
  maxRetries: whole(0, 2_147_483_647),
  poolSize: whole(1, 1_000),
  onFailedKey: oneOf('block', 'skip'),
  consumer: text(0, 200),
  messageType: {
    must: `a text of 1 to 200 characters other than ${UNREADABLE_TYPE}`,
    holds: (value: unknown) => text(1, 200).holds(value) && value !== UNREADABLE_TYPE,
  },
} as const;

/**
 * Checks options when a function is made, so that a mistake shows at the deploy and not as work that stands still.
 * What is left out is right. Throws one `ConfigurationError` that names every fault.
 *
 * @param of whose options they are, e.g. `inboxHandler`, or `inboxHandler's retry`
 */
export function checkOptions(
  of: string,
  options: object | undefined,
  rules: Readonly<Record<string, Rule>>,
  needed: readonly string[] = [],
): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null) {
    throw new ConfigurationError(`${of} must be an object, but is ${shown(options)}`);
  }
  const given = new Map<string, unknown>(Object.entries(options));
  const faults = Object.entries(rules).flatMap(([name, { must, holds }]) => {
    const value = given.get(name);
    const fine = value === undefined ? !needed.includes(name) : holds(value);
    return fine ? [] : [`${name} must be ${must}, but is ${shown(value)}`];
  });
  if (faults.length > 0) throw new ConfigurationError(`${of} can't work so: ${faults.join('; ')}`);
}

function within(value: unknown, from: number, to: number): boolean {
  return typeof value === 'number' && value >= from && value <= to;
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 60));
  if (typeof value === 'number' || typeof value === 'boolean' || value == null) return String(value);
  return Array.isArray(value) ? 'an array' : `of type ${typeof value}`;
}
