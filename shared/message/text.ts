/** Characters as PostgreSQL's `varchar(n)` counts them: code points. */
export function characters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** True where the text has a NUL or half of a surrogate pair: no PostgreSQL text or jsonb value can hold either. */
export function unstorable(text: string): boolean {
  return text.includes('\0') || !text.isWellFormed();
}

// All that SQS takes in a body or an attribute; with the `u` flag a lone surrogate falls outside of it too.
const sqsCharacters = /^[\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]*$/u;

/** True where SQS would refuse the text as it stands, in a body or in an attribute. */
export function unsendable(text: string): boolean {
  return !sqsCharacters.test(text);
}

/** Names the first character at fault, for an error message. */
export function firstUnsendable(text: string): string {
  for (const character of text) {
    if (unsendable(character)) return codePoint(character);
  }
  return 'none';
}

/** Makes any text storable, e.g. an error's: NULs and lone surrogates become U+FFFD, what is too long is cut between characters. */
export function storable(text: string, maxCharacters = 4000): string {
  // Cut first, so that a huge text isn't copied three times; a character has at most two code units.
  const rough = text.slice(0, maxCharacters * 2);
  const clean = rough.replaceAll('\0', '\uFFFD').toWellFormed();
  return characters(clean) <= maxCharacters ? clean : [...clean].slice(0, maxCharacters).join('');
}

function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}
