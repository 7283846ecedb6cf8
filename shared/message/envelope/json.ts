/**
 * Reads JSON without changing it: a payload inside an envelope is cut out as it stands, so that numbers beyond 2^53,
 * the order of keys and the way it was written all survive. Every function here expects JSON that has been parsed
 * before, and so is known to be valid.
 */

/** JSON's text as an object, or undefined where it is no JSON or no object. */
export function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** A value as an object with named members; undefined for arrays, null and all else. */
export function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return value as Readonly<Record<string, unknown>>;
}

/** True where the text is JSON of any kind. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The text of an object's member, exactly as it stands; of several with one name the last, as `JSON.parse` does. */
export function memberText(json: string, name: string): string | undefined {
  let found: string | undefined;
  for (const [each, text] of members(json)) if (each === name) found = text;
  return found;
}

/** Names and texts of an object's members, as they stand; none where the JSON is no object. However deep it is nested. */
export function* members(json: string): Generator<readonly [name: string, text: string]> {
  let at = skipSpace(json, 0);
  if (json[at] !== '{') return;
  at = skipSpace(json, at + 1);
  while (json[at] === '"') {
    const nameEnd = endOfString(json, at);
    const value = skipSpace(json, skipSpace(json, nameEnd) + 1);
    const valueEnd = endOfValue(json, value);
    yield [JSON.parse(json.slice(at, nameEnd)) as string, json.slice(value, valueEnd)];
    at = skipSpace(json, valueEnd);
    if (json[at] === ',') at = skipSpace(json, at + 1);
  }
}

function skipSpace(json: string, from: number): number {
  let at = from;
  while (json[at] === ' ' || json[at] === '\n' || json[at] === '\r' || json[at] === '\t') at++;
  return at;
}

/** Behind the closing quote of the string that opens at `from`. */
function endOfString(json: string, from: number): number {
  let at = from + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}

function endOfValue(json: string, from: number): number {
  if (json[from] === '"') return endOfString(json, from);
  let depth = 0;
  for (let at = from; at < json.length; at++) {
    const character = json[at] as string;
    if (character === '"') at = endOfString(json, at) - 1;
    else if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') {
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (depth === 0 && ', \n\r\t'.includes(character)) return at;
  }
  return json.length;
}
