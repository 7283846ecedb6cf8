/** A header value travels as text. Numbers, dates and objects belong in the payload. */
export type Headers = Readonly<Record<string, string>>;

/** What an application hands to `outbox.add`. */
export interface NewMessage {
  /** UUID; a version 7 UUID is made where it is not given. The same id given twice is added once. */
  readonly id?: string;
  /** Logical destination name: 1–300 characters of `A–Z a–z 0–9 . _ -`, mapped to a queue or bus by the relay's configuration. */
  readonly destination: string;
  /** Name of the event, 1–200 characters, e.g. `order.placed`. */
  readonly messageType: string;
  /** Anything JSON can carry, with `Date` as ISO text and `bigint` as its digits in a string. */
  readonly payload: unknown;
  readonly headers?: Headers;
  /** At most 200 characters. */
  readonly correlationId?: string;
  /** Messages with the same key are published in order, one at a time. At most 200 characters. */
  readonly partitionKey?: string;
  /** Seconds before the first publish, 0 or more. Refused together with `partitionKey`. */
  readonly delaySeconds?: number;
  /** Retries after the first attempt for failures of the message itself. @default without limit */
  readonly maxRetries?: number;
}

/** What `outbox.add` answers for one message. */
export interface AddResult {
  readonly id: string;
  /** False where a message with this id is in the outbox already. */
  readonly added: boolean;
}

/** A validated, serialised message as a producer store writes it. Instants are the database's; only durations are sent. */
export interface OutboxRow {
  readonly id: string;
  readonly destination: string;
  readonly messageType: string;
  /** JSON text. */
  readonly payload: string;
  readonly headers: Headers | null;
  readonly correlationId: string | null;
  readonly partitionKey: string | null;
  readonly delaySeconds: number | null;
  readonly maxRetries: number;
}

/** A message on its way to a broker: what a publisher needs to build a wire entry, whatever the transport. */
export interface OutgoingMessage {
  readonly id: string;
  readonly messageType: string;
  /** The payload exactly as stored; JSON where Relaybox wrote it, any text where another program did. */
  readonly payload: string;
  readonly headers: Headers;
  readonly correlationId: string | null;
  readonly partitionKey: string | null;
  /** How often a person has requeued this message; makes a new FIFO deduplication id for each replay. */
  readonly replay: number;
}

/** A message as a handler sees it. */
export interface Message<Payload = unknown> {
  /** The external message id: what the sender calls this message. */
  readonly id: string;
  /** The source configured for the inbox that received it. */
  readonly source: string;
  readonly messageType: string;
  readonly payload: Payload;
  readonly headers: Headers;
  readonly correlationId: string | undefined;
  readonly partitionKey: string | undefined;
  /** 1 at the first attempt. */
  readonly attempt: number;
  /** When the inbox row was written, by the database's clock, ISO 8601. */
  readonly createdAt: string;
}

/** States as stored, the numbers of the seed's tables. */
export const State = { Pending: 0, Processing: 1, Processed: 2, Failed: 3, Discarded: 4 } as const;
/** A row's state, as stored. */
export type State = (typeof State)[keyof typeof State];
