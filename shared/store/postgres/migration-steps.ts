import { readFileSync } from 'node:fs';
import { type Step, stepsOf } from '../migration/steps.ts';
import { migrationFiles } from './migration-files.ts';
import type { Names } from './names.ts';

/** Reads the migrations and puts the tables' names in. */
export function migrationSteps(names: Names): readonly Step[] {
  return migrationFiles.flatMap((file, index) => {
    const text = readFileSync(new URL(`./migrations/${file}`, import.meta.url), 'utf8');
    return stepsOf(index + 1, text, names.placeholders);
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

/** A step's statements. Splits at a semicolon that ends a line, outside `$relaybox$` bodies; the migrations keep to that. */
export function statementsOf({ text }: Step): string[] {
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
