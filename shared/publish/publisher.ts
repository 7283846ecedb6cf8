import type { Failure } from '../delivery/failure.ts';
import type { OutgoingMessage } from '../message/message.ts';

/** What a transport takes in one call. */
export interface TransportLimits {
  /** Entries per call. */
  readonly entries: number;
  /** Bytes per call, all entries together, as `Prepared.bytes` counts them. */
  readonly callBytes: number;
  /** True where messages of one key arrive in the order they were sent. */
  readonly ordered: boolean;
}

/** A message in the transport's own form, measured. */
export interface Prepared<Entry> {
  readonly entry: Entry;
  /** Bytes that count towards the call's limit: body, attributes, names. */
  readonly bytes: number;
}

/** What became of one entry of a call. */
export type SendOutcome = { readonly kind: 'published' } | Failure;

/** Carries messages to one destination. To add a broker, implement this and map a destination to it. */
export interface Publisher<Entry = unknown> {
  readonly limits: TransportLimits;

  /** Puts a message in wire form. Throws `Rejected` where this transport can never carry it. */
  prepare(message: OutgoingMessage): Prepared<Entry>;

  /**
   * Sends one call. Answers one outcome per entry, in the order given, from what the broker said of each entry by id;
   * an entry that the broker did not mention has failed. Throws where the whole call failed: `classify` says how.
   */
  send(entries: readonly Entry[], options: { readonly signal: AbortSignal }): Promise<readonly SendOutcome[]>;

  /** What an error of `send` means, for every message of the call. */
  classify(error: unknown): Failure;

  /** Resolves where the destination exists and may be used; throws with a reason where not. Called once per process. */
  verify?(options: { readonly signal: AbortSignal }): Promise<void>;
}

/** Logical destination names to publishers. */
export type Destinations = ReadonlyMap<string, Publisher<unknown>>;
