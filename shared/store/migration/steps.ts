/** A piece of a migration that is applied as a whole, and recorded as applied. */
export interface Step {
  readonly version: number;
  readonly name: string;
  /** As it stands in the file, with the names in place. */
  readonly text: string;
  /**
   * - `transaction`: all of it and the record, or nothing.
   * - `index`: built in no transaction of ours; safe to begin again.
   * - `batches`: a backfill that commits batch by batch; safe to begin again.
   */
  readonly mode: 'transaction' | 'index' | 'batches';
  /** Left out while the inbox has the seed's own unique index. */
  readonly unlessSeedIdentity: boolean;
}

/** What a step is called in reports and in the record, e.g. `3 outbox ready`. */
export function stepKey(step: Step): string {
  return `${step.version} ${step.name}`;
}

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
      mode: modeOf(flags),
      unlessSeedIdentity: flags.includes('unless seed identity'),
    };
  });
}

function modeOf(flags: readonly string[]): Step['mode'] {
  if (flags.includes('in batches')) return 'batches';
  return flags.includes('index') || flags.includes('concurrently') ? 'index' : 'transaction';
}

function filled(text: string, placeholders: Readonly<Record<string, string>>): string {
  return text.replace(/\{\{(\w+)\}\}/g, (whole, key: string) => {
    const value = placeholders[key];
    if (value === undefined) throw new Error(`the migrations use ${whole}, which has no name`);
    return value;
  });
}
