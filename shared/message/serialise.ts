import { MessageRefused } from './errors.ts';

/**
 * A payload as JSON text that every transport can carry. `Date` becomes ISO text and `bigint` its digits in a string;
 * what JSON would lose in silence (a Map's entries, NaN) is refused.
 */
export function serialisePayload(payload: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(payload, carry);
  } catch (error) {
    if (error instanceof MessageRefused) throw error;
    throw new MessageRefused('payload', 'a value that JSON can carry', whyNot(error));
  }
  if (text === undefined) throw new MessageRefused('payload', 'a value that JSON can carry', typeof payload);
  return escapeNoncharacters(text);
}

/** JSON leaves U+FFFE and U+FFFF as they are, and SQS refuses them; escaped they parse to the same. */
export function escapeNoncharacters(json: string): string {
  return json.replace(/[\uFFFE\uFFFF]/g, (character) => (character === '\uFFFE' ? '\\ufffe' : '\\uffff'));
}

/** Levels of arrays and objects in a JSON text. */
export function nesting(json: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < json.length; at++) {
    const character = json[at];
    if (inString) {
      if (character === '\\') at += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{' || character === '[') deepest = Math.max(deepest, ++depth);
    else if (character === '}' || character === ']') depth -= 1;
  }
  return deepest;
}

/** `this` is the holder: only there is a Date still a Date, since its `toJSON` has run before. */
function carry(this: unknown, key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number' && !Number.isFinite(value))
    throw refused(key, String(value), 'a finite number');
  if (value instanceof Map || value instanceof Set || value instanceof WeakMap || value instanceof WeakSet) {
    const kind = value.constructor.name;
    throw refused(key, `a ${kind}`, `an array or an object, e.g. [...${kind.toLowerCase()}]`);
  }
  if (value === null && isInvalidDate(this, key)) throw refused(key, 'an invalid Date', 'a valid Date');
  return value;
}

function isInvalidDate(holder: unknown, key: string): boolean {
  const original = (holder as Record<string, unknown>)[key];
  return original instanceof Date && Number.isNaN(original.getTime());
}

function refused(key: string, actual: string, limit: string): MessageRefused {
  return new MessageRefused('payload', limit, key === '' ? actual : `${actual} at ${JSON.stringify(key)}`);
}

function whyNot(error: unknown): string {
  if (error instanceof RangeError) return 'nested too deeply, or too long for one text';
  if (error instanceof TypeError && /circular|cyclic/i.test(error.message))
    return 'one that refers to itself';
  return `one whose serialisation threw ${error instanceof Error ? error.name : typeof error}`;
}
