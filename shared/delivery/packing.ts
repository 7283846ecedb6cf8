import type { Prepared, TransportLimits } from '../publish/publisher.ts';

/** Something to send, with the key whose order it must keep. */
export interface Parcel<Entry> extends Prepared<Entry> {
  readonly key: string | null;
  /** Travels in a call of its own: it has failed before and must not take others with it. */
  readonly alone: boolean;
}

/**
 * Splits parcels into rounds of calls. A call holds at most what the transport takes, by count and by bytes, and one
 * message per key: a broker's partial failure could otherwise let a key's second message pass its first.
 * Calls of one round may run side by side; a key's next message is in a later round.
 */
export function packRounds<P extends Parcel<unknown>>(
  parcels: readonly P[],
  limits: TransportLimits,
): P[][][] {
  const rounds: P[][] = [];
  const seen = new Map<string, number>();
  for (const parcel of parcels) {
    const round = parcel.key === null ? 0 : (seen.get(parcel.key) ?? 0);
    if (parcel.key !== null) seen.set(parcel.key, round + 1);
    const list = rounds[round];
    if (list) list.push(parcel);
    else rounds[round] = [parcel];
  }
  return rounds.map((round) => packCalls(round, limits));
}

function packCalls<P extends Parcel<unknown>>(parcels: readonly P[], limits: TransportLimits): P[][] {
  const alone: P[][] = [];
  const calls: P[][] = [];
  let call: P[] = [];
  let bytes = 0;
  for (const parcel of parcels) {
    if (parcel.alone) {
      alone.push([parcel]);
      continue;
    }
    if (call.length > 0 && (call.length >= limits.entries || bytes + parcel.bytes > limits.callBytes)) {
      calls.push(call);
      call = [];
      bytes = 0;
    }
    call.push(parcel);
    bytes += parcel.bytes;
  }
  if (call.length > 0) calls.push(call);
  // Those that failed before go first: a success after their failure is what proves it to be theirs.
  return [...alone, ...calls];
}
