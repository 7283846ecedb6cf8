import { MessageRefused } from '../../message/errors.ts';
import { unstorable } from '../../message/text.ts';

/** Throws `MessageRefused` for a text that identifies something and can't be stored as it is. */
export function refuseUnstorable(field: string, text: string): void {
  if (unstorable(text)) {
    throw new MessageRefused(field, 'without NUL and lone surrogates', 'text with one of them');
  }
}

/** A text of any length that can be stored: what can't be is replaced. */
export function clean(text: string): string {
  return unstorable(text) ? text.replaceAll('\0', '\uFFFD').toWellFormed() : text;
}

/** Headers whose names and values can be stored. */
export function cleanHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [clean(name), clean(value)]));
}
