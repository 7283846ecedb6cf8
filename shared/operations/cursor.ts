import { RequestRefused } from './errors.ts';

/** Makes an opaque cursor of the place where a page ended. */
export function encodeCursor(place: readonly string[]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

/**
 * Reads a cursor of `encodeCursor`.
 * @throws {RequestRefused} where it is none of so many parts
 */
export function decodeCursor(cursor: string, parts: number): readonly string[] {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(place) && place.length === parts && place.every((part) => typeof part === 'string')) {
      return place as readonly string[];
    }
  } catch {
    // Said below, for whatever reason it can't be read.
  }
  throw new RequestRefused('after must be the next of an earlier answer to the same request');
}
