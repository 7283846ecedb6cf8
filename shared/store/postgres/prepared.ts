import { createHash } from 'node:crypto';
import type pg from 'pg';

/** Begins a statement that is planned once per connection instead of at each run. */
const MARK = '/* prepared */';

/**
 * Marks a statement that runs once per batch and has one sensible plan, whatever its values: planning it anew costs
 * more than half of its time. Behind a proxy the mark is a comment and nothing else, since a named statement would
 * pin the connection; so it is with any other way to run SQL.
 */
export function prepared(statement: string): string {
  return `${MARK}${statement}`;
}

/** What the driver is to run: by name where the statement is marked and names are allowed. */
export class Statements {
  readonly #allowed: boolean;
  readonly #names = new Map<string, string>();

  constructor(allowed: boolean) {
    this.#allowed = allowed;
  }

  of(text: string, values: unknown[] = []): pg.QueryConfig {
    if (!this.#allowed || !text.startsWith(MARK)) return { text, values };
    const name =
      this.#names.get(text) ?? `relaybox_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
    this.#names.set(text, name);
    return { name, text, values };
  }
}

/** SQLSTATEs of a connection whose prepared statements are not what we think: nothing ran, and another one will do. */
export const STALE_STATEMENT: ReadonlySet<string> = new Set([
  '26000', // it is not there: a pooler gave us another server connection
  '42P05', // it is there already
]);
