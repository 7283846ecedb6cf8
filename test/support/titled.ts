const LONGEST = 60;

/**
 * A value as a test's title shows it: each field by its path, such as `retry.firstSeconds NaN`, with texts short and
 * without characters that a terminal hides or acts upon.
 */
export function titled(value: unknown): string {
  return fieldsOf(value, '').join(', ');
}

function fieldsOf(value: unknown, path: string): string[] {
  const entries = Array.isArray(value)
    ? value.map((item, index) => [`${path}[${index}]`, item] as const)
    : isPlain(value)
      ? Object.entries(value).map(([name, item]) => [path ? `${path}.${name}` : name, item] as const)
      : [];
  if (entries.length > 0) return entries.flatMap(([at, item]) => fieldsOf(item, at));
  return [path ? `${path} ${leaf(value)}` : leaf(value)];
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function leaf(value: unknown): string {
  if (value === undefined) return 'not given';
  if (Array.isArray(value)) return 'an empty list';
  if (typeof value === 'string') return text(value);
  if (typeof value !== 'object' || value === null) return String(value);
  return isPlain(value) ? 'an empty object' : `a ${value.constructor.name}`;
}

function text(value: string): string {
  if (value.length > LONGEST) return `a text of ${value.length} code units`;
  return JSON.stringify(value).replace(
    /[\u007f-\u009f\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
