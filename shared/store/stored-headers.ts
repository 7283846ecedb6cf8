import { members, parseObject } from '../message/envelope/json.ts';
import type { Headers } from '../message/message.ts';

const none: Headers = Object.freeze({});

/**
 * Headers as a row has them: the JSON text of an object of texts, where Relaybox wrote it. Another program may have
 * put anything there: what is no text is taken as its JSON, and what is no object has no names to send. It never throws,
 * since the other rows of its batch would suffer: so it does not go down into what may be nested thousands of levels deep.
 */
export function storedHeaders(text: string | null): Headers {
  if (text === null) return none;
  const stored = parseObject(text);
  if (stored === undefined) return none;
  if (Object.values(stored).every((value) => typeof value === 'string')) return stored as Headers;
  // Cut out of the text, a number keeps all its digits. An own `__proto__` is a name like others.
  return Object.fromEntries(
    [...members(text)].flatMap(([name, value]) => (value === 'null' ? [] : [[name, asText(value)]])),
  );
}

function asText(json: string): string {
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}
