import { MessageRefused } from './errors.ts';

/**
 * A payload as JSON text that every transport can carry. `Date` becomes ISO text and `bigint` its digits in a string;
 * what JSON would lose in silence (a Map's entries, NaN, an undefined element of an array) is refused, with its path.
 * Members that are undefined or functions are left out, as they are everywhere.
 */
export function serialisePayload(payload: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(payload, carrier());
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

/**
 * A replacer that knows where it is: the holders on the way to the member at hand, and their names. It is given each
 * member's holder as `this`: only there is a Date still a Date, since its `toJSON` has run before.
 */
function carrier(): (this: unknown, key: string, value: unknown) => unknown {
  const holders: unknown[] = [];
  const names: string[] = [];
  return function carry(key, value) {
    while (holders.length > 0 && holders.at(-1) !== this) {
      holders.pop();
      names.pop();
    }
    if (typeof value === 'bigint') return value.toString();
    const loss = lossOf(this, key, value);
    if (loss) throw new MessageRefused(pathOf(holders, [...names, key]), loss.limit, loss.actual);
    if (typeof value === 'object' && value !== null) {
      holders.push(value);
      names.push(key);
    }
    return value;
  };
}

interface Loss {
  readonly actual: string;
  readonly limit: string;
}

/** What JSON would make null, or an empty object, without a word. */
function lossOf(holder: unknown, key: string, value: unknown): Loss | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : { actual: String(value), limit: 'a finite number' };
    case 'object':
      break;
    default:
      return Array.isArray(holder)
        ? {
            actual: typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`,
            limit: 'a value or null',
          }
        : undefined;
  }
  if (value !== null) return lossOfObject(value);
  const original = (holder as Record<string, unknown>)[key];
  return original instanceof Date && Number.isNaN(original.getTime())
    ? { actual: 'an invalid Date', limit: 'a valid Date' }
    : undefined;
}

/** Kinds of objects whose content is all in the members that JSON writes. */
const open = new Set(['Object', 'Array', 'String', 'Boolean', 'Arguments']);

function lossOfObject(value: object): Loss | undefined {
  if (typeof (value as { readonly then?: unknown }).then === 'function') {
    return { actual: 'a promise', limit: 'what it resolves to: await it' };
  }
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  if (open.has(kind) || ArrayBuffer.isView(value)) return undefined;
  if (kind === 'Number') return lossOf(undefined, '', Number(value));
  if (kind === 'Error') return { actual: 'an Error', limit: 'its facts, e.g. { message: error.message }' };
  // A Map, a Set, a RegExp: something inside, and nothing that JSON sees.
  if (Object.keys(value).length > 0) return undefined;
  const how = kind === 'Map' || kind === 'Set' ? `, e.g. [...${kind.toLowerCase()}]` : '';
  return { actual: `a ${kind}`, limit: `an array or a plain object${how}` };
}

/** The place of a member, e.g. `payload.lines[3].total`. */
function pathOf(holders: readonly unknown[], names: readonly string[]): string {
  const steps = names.slice(1).map((name, at) => {
    if (Array.isArray(holders[at])) return `[${name}]`;
    return /^[\w$]+$/.test(name) ? `.${name}` : `[${JSON.stringify(name.slice(0, 60))}]`;
  });
  const path = `payload${steps.join('')}`;
  return path.length > 200 ? `…${path.slice(-200).toWellFormed()}` : path;
}

function whyNot(error: unknown): string {
  if (error instanceof RangeError) return 'nested too deeply, or too long for one text';
  if (error instanceof TypeError && /circular|cyclic/i.test(error.message))
    return 'one that refers to itself';
  return `one whose serialisation threw ${error instanceof Error ? error.name : typeof error}`;
}
