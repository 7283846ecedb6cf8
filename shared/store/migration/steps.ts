/** A piece of a migration that is applied as a whole, and recorded as applied. */
export interface Step {
  readonly version: number;
  readonly name: string;
  /** As it stands in the file, with the names in place. */
  readonly text: string;
  /**
   * - `transaction`: all of it and the record, or nothing.
   * - `autocommit`: an index, or a backfill that commits in batches; safe to begin again.
   */
  readonly mode: 'transaction' | 'autocommit';
  /** Left out while the inbox has the seed's own unique index. */
  readonly unlessSeedIdentity: boolean;
}

/** What a step is called in reports and in the record, e.g. `3 outbox ready`. */
export function stepKey(step: Step): string {
  return `${step.version} ${step.name}`;
}

/** Flags behind a step's name in the file, by which it can't be one transaction. */
const autocommit = ['concurrently', 'index', 'in batches'];

/** The steps of a migration's file. `-- step: name, flags` begins one, and `{{name}}` stands for a placeholder's value. */
export function stepsOf(
  version: number,
  file: string,
  placeholders: Readonly<Record<string, string>>,
): readonly Step[] {
  const [, ...parts] = file.split(/^-- step: /m);
  return parts.map((part) => {
    const [title = '', ...lines] = filled(part, placeholders).split('\n');
    const [name = '', ...flags] = title.split(',').map((piece) => piece.trim());
    return {
      version,
      name,
      text: lines.join('\n').trim(),
      mode: flags.some((flag) => autocommit.includes(flag)) ? 'autocommit' : 'transaction',
      unlessSeedIdentity: flags.includes('unless seed identity'),
    };
  });
}

function filled(text: string, placeholders: Readonly<Record<string, string>>): string {
  return text.replace(/\{\{(\w+)\}\}/g, (whole, key: string) => {
    const value = placeholders[key];
    if (value === undefined) throw new Error(`the migrations use ${whole}, which has no name`);
    return value;
  });
}
