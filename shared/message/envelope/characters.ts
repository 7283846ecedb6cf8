import { firstUnsendable, storable, unsendable, unstorable } from '../text.ts';

/** Where a text has its first character that SQS refuses, and which. Undefined where SQS carries all of it. */
export function refusedBySqs(
  text: string,
): { readonly position: number; readonly character: string } | undefined {
  if (!unsendable(text)) return undefined;
  let position = 0;
  for (const character of text) {
    if (unsendable(character)) break;
    position += character.length;
  }
  return { position, character: firstUnsendable(text) };
}

/** Why the database could not keep a text exactly as it is. Undefined where it can. */
export function refusedByDatabase(text: string): string | undefined {
  if (!unstorable(text)) return undefined;
  const nul = text.indexOf('\0');
  return nul >= 0 ? `holds a NUL at position ${nul}` : 'holds half of a surrogate pair';
}

/** The whole text with what no database keeps replaced by U+FFFD: for raw bodies that a person will look at. */
export function keepable(text: string): string {
  return storable(text, Number.POSITIVE_INFINITY);
}
