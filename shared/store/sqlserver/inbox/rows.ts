import type { ClaimedInboxMessage } from '../../inbox-store.ts';
import type { DriverRow } from '../../values.ts';
import { digestHex } from '../digest.ts';

/** A key of the inbox by its digest, and the lease on it that is to end. */
export interface KeyLease {
  /** Hexadecimal digits of the digest of consumer, source and partition key. */
  readonly key: string;
  /** Null leaves whatever lease runs on the key as it is. */
  readonly token: string | null;
}

/** Rows in the order of their sequence: `OUTPUT` has none. One without a number is older than all. */
export function inOrder(rows: readonly DriverRow[]): readonly DriverRow[] {
  const place = (row: DriverRow): bigint | undefined =>
    row['sequence'] === null || row['sequence'] === undefined ? undefined : BigInt(String(row['sequence']));
  return [...rows].sort((a, b) => {
    const [left, right] = [place(a), place(b)];
    if (left === right) return String(a['id']) < String(b['id']) ? -1 : 1;
    if (left === undefined) return -1;
    return right === undefined || left > right ? 1 : -1;
  });
}

/** The keys of keyed messages, with their leases, sorted. A worker holds one message per key, so none is there twice. */
export function keysOf(messages: readonly ClaimedInboxMessage[]): readonly KeyLease[] {
  return sorted(
    messages.flatMap(({ consumer, source, partitionKey, lockToken }) =>
      partitionKey === null ? [] : [{ key: digestHex(consumer, source, partitionKey), token: lockToken }],
    ),
  );
}

/** Keys in the order in which everybody locks them. */
export function sorted(keys: readonly KeyLease[]): readonly KeyLease[] {
  return [...keys].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}
