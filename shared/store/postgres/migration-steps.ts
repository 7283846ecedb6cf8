import { readFileSync } from 'node:fs';
import { migrationFiles } from './migration-files.ts';
import type { Names } from './names.ts';

/** A piece of a migration that is applied as a whole, and recorded as applied. */
export interface Step {
  readonly version: number;
  readonly name: string;
  /** With the tables' names in place. */
  readonly statements: readonly string[];
  /**
   * - `transaction`: all statements and the record, or nothing.
   * - `autocommit`: an index built beside running writers, or a backfill that commits in batches; safe to begin again.
   */
  readonly mode: 'transaction' | 'autocommit';
  /** Left out while the inbox has the seed's own unique index. */
  readonly unlessSeedIdentity: boolean;
  /** As it stands in the file, comments included, with the names in place. */
  readonly text: string;
}

/** Reads the migrations and puts the tables' names in. */
export function migrationSteps(names: Names): readonly Step[] {
  return migrationFiles.flatMap((file, index) => {
    const text = readFileSync(new URL(`./migrations/${file}`, import.meta.url), 'utf8');
    const [, ...parts] = fill(text, names).split(/^-- step: /m);
    return parts.map((part) => parse(index + 1, part));
  });
}

/** The relation a `CREATE … IF NOT EXISTS` makes; it is skipped where that is there, since PostgreSQL asks for the right to create first. */
export function createdRelation(statement: string, names: Names): string | undefined {
  const made =
    /^CREATE (?:TABLE|SEQUENCE|(?:UNIQUE )?(INDEX)(?: CONCURRENTLY)?) IF NOT EXISTS ((?:"(?:[^"]|"")+"|[\w.])+)/.exec(
      statement,
    );
  if (made?.[2] === undefined) return undefined;
  // An index is created in its table's schema, so its name stands alone.
  return made[1] === undefined ? made[2] : `${names.schema}.${made[2]}`;
}

function parse(version: number, part: string): Step {
  const [title = '', ...lines] = part.split('\n');
  const [name = '', ...flags] = title.split(',').map((piece) => piece.trim());
  const text = lines.join('\n').trim();
  return {
    version,
    name,
    statements: statementsOf(text),
    mode: flags.includes('concurrently') || flags.includes('in batches') ? 'autocommit' : 'transaction',
    unlessSeedIdentity: flags.includes('unless seed identity'),
    text,
  };
}

/** Splits at a semicolon that ends a line, outside `$relaybox$` bodies; the migrations keep to that. */
function statementsOf(text: string): string[] {
  const code = text.replace(/^\s*--.*\n/gm, '').trim();
  const bodies: string[] = [];
  const folded = code.replace(
    /\$relaybox\$[\s\S]*?\$relaybox\$/g,
    (body) => `$body${bodies.push(body) - 1}$`,
  );
  return folded
    .split(/;\s*(?:\n|$)/)
    .filter((piece) => piece.trim() !== '')
    .map((piece) => piece.trim().replace(/\$body(\d+)\$/, (_, index) => bodies[Number(index)] ?? ''));
}

function fill(text: string, names: Names): string {
  return text.replace(/\{\{(\w+)\}\}/g, (whole, key: string) => {
    const value = names.placeholders[key];
    if (value === undefined) throw new Error(`the migrations use ${whole}, which has no name`);
    return value;
  });
}
