import { readFileSync } from 'node:fs';
import { type Step, stepsOf } from '../migration/steps.ts';
import { migrationFiles } from './migration-files.ts';
import type { Names } from './names.ts';

/**
 * Reads the migrations and puts the tables' names in. Each step is one batch.
 *
 * @param options.online build indexes beside running writers, which only some editions can
 */
export function migrationSteps(names: Names, options: { readonly online?: boolean } = {}): readonly Step[] {
  const placeholders = options.online ? { ...names.placeholders, online: 'ONLINE = ON' } : names.placeholders;
  return migrationFiles.flatMap((file, index) => {
    const text = readFileSync(new URL(`./migrations/${file}`, import.meta.url), 'utf8');
    return stepsOf(index + 1, text, placeholders);
  });
}
