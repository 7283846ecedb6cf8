import { createHash } from 'node:crypto';

/**
 * SHA-256 over texts, each with its length in bytes before it, so that no two lists have the same bytes. Collations fold
 * case and ignore trailing spaces, a digest doesn't: what identifies something is compared by it. The same bytes as
 * `inboxDigest` and its like make in the database.
 */
export function digestOf(...parts: readonly string[]): Buffer {
  const hash = createHash('sha256');
  for (const part of parts) {
    const bytes = Buffer.from(part, 'utf16le');
    const length = Buffer.alloc(2);
    length.writeInt16BE(bytes.length);
    hash.update(length).update(bytes);
  }
  return hash.digest();
}

/** The digest as JSON carries it into a statement; there `CONVERT(BINARY(32), …, 2)` reads it. */
export function digestHex(...parts: readonly string[]): string {
  return digestOf(...parts)
    .toString('hex')
    .toUpperCase();
}
