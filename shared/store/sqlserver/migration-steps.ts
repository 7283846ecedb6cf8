import { readFileSync } from 'node:fs';
import { migrationFiles } from './migration-files.ts';
import type { Names } from './names.ts';

/** A piece of a migration: one batch, applied and recorded as a whole. */
export interface Step {
  readonly version: number;
  readonly name: string;
  /** The batch, with the tables' names in place and without the comments before it. */
  readonly text: string;
  /**
   * - `transaction`: the batch and the record, or nothing.
   * - `autocommit`: an index, or a backfill that commits in batches; safe to begin again.
   */
  readonly mode: 'transaction' | 'autocommit';
  /** Left out while the inbox has the seed's own unique index. */
  readonly unlessSeedIdentity: boolean;
}

/** What a step is called in reports and in the record, e.g. `3 outbox due`. */
export function stepKey(step: Step): string {
  return `${step.version} ${step.name}`;
}

/**
 * Reads the migrations and puts the tables' names in.
 *
 * @param options.online build indexes beside running writers, which only some editions can
 */
export function migrationSteps(names: Names, options: { readonly online?: boolean } = {}): readonly Step[] {
  const placeholders = options.online ? { ...names.placeholders, online: 'ONLINE = ON' } : names.placeholders;
  return migrationFiles.flatMap((file, index) => {
    const text = readFileSync(new URL(`./migrations/${file}`, import.meta.url), 'utf8');
    const [, ...parts] = text.split(/^-- step: /m);
    return parts.map((part) => parse(index + 1, fill(part, placeholders)));
  });
}

function parse(version: number, part: string): Step {
  const [title = '', ...lines] = part.split('\n');
  const [name = '', ...flags] = title.split(',').map((piece) => piece.trim());
  return {
    version,
    name,
    text: lines.join('\n').trim(),
    mode: flags.includes('index') || flags.includes('in batches') ? 'autocommit' : 'transaction',
    unlessSeedIdentity: flags.includes('unless seed identity'),
  };
}

function fill(text: string, placeholders: Readonly<Record<string, string>>): string {
  return text.replace(/\{\{(\w+)\}\}/g, (whole, key: string) => {
    const value = placeholders[key];
    if (value === undefined) throw new Error(`the migrations use ${whole}, which has no name`);
    return value;
  });
}
