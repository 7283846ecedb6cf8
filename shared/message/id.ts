import { createHash, randomBytes } from 'node:crypto';
import { MessageRefused } from './errors.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** True for a UUID of any version in its usual form. */
export function isUuid(text: string): boolean {
  return uuid.test(text);
}

let lastMs = 0;
let counter = 0;

/**
 * A version 7 UUID: a time-ordered id, so that new rows meet in the same pages of an index. Each is greater than the
 * one before it in this process, also when the clock is set back.
 */
export function newId(now: number = Date.now()): string {
  const random = randomBytes(10);
  if (now > lastMs) {
    lastMs = now;
    // Twelve bits count within a millisecond; starting in the lower half leaves room for 2,048.
    counter = random.readUInt16BE(0) & 0x7ff;
  } else if (++counter > 0xfff) {
    lastMs += 1;
    counter = 0;
  }
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(lastMs, 0, 6);
  bytes.writeUInt16BE(0x7000 | counter, 6);
  random.copy(bytes, 8, 2);
  return format(bytes);
}

/**
 * A stable UUID of a business key: the same parts give the same id in every process, so that adding the message
 * again answers `added: false`. Each part counts with its length: `('a', 'bc')` and `('ab', 'c')` differ.
 *
 * @example
 * await outbox.add(tx, { id: messageId('invoice', 4711, 'created'), … });
 */
export function messageId(...parts: readonly (string | number)[]): string {
  if (parts.length === 0) throw new MessageRefused('id', 'made of at least one part', 'made of none');
  const hash = createHash('sha256').update('relaybox message id\n');
  for (const part of parts) {
    const text = String(part);
    // Half of a surrogate pair has no UTF-8, and NaN is no key: both would make one id of many keys.
    if (!text.isWellFormed() || (typeof part === 'number' && !Number.isFinite(part))) {
      throw new MessageRefused('id', 'made of finite numbers and well-formed text', `made of ${text}`);
    }
    hash.update(`${Buffer.byteLength(text)}:${text}`);
  }
  const bytes = hash.digest().subarray(0, 16);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(6) & 0x0f), 6);
  return format(bytes);
}

function format(bytes: Buffer): string {
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
