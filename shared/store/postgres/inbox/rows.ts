import type { ClaimedInboxMessage } from '../../inbox-store.ts';

/** A key of the inbox, and the lease on it that is to end. */
export interface KeyLease {
  readonly consumer: string;
  readonly source: string;
  readonly partitionKey: string;
  /** Null leaves whatever lease runs on the key as it is. */
  readonly token: string | null;
}

/** The keys of keyed messages, with their leases. A worker holds one message per key, so none is there twice. */
export function keysOf(messages: readonly ClaimedInboxMessage[]): readonly KeyLease[] {
  return messages.flatMap(({ consumer, source, partitionKey, lockToken }) =>
    partitionKey === null ? [] : [{ consumer, source, partitionKey, token: lockToken }],
  );
}

/** Keys as the array parameters of `lockKeys` and `refreshKeys`. */
export function keyArrays(keys: readonly KeyLease[]): [string[], string[], string[]] {
  return [
    keys.map((key) => key.consumer),
    keys.map((key) => key.source),
    keys.map((key) => key.partitionKey),
  ];
}
