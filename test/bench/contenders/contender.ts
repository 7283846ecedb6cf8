/** One way to carry messages out of a database. */
export interface Contender {
  readonly name: string;
  /** Fills an empty table with so many messages of 400 bytes, and leaves the server at rest. Not timed. */
  fill(messages: number): Promise<void>;
  /** Hands each message to a publisher that does nothing, in batches of 100, and settles it. Answers how many. Timed. */
  drain(): Promise<number>;
  close(): Promise<void>;
}

/** Messages per batch, of every contender. */
export const BATCH = 100;

/** A payload of exactly 400 bytes of JSON. */
export const PAYLOAD = JSON.stringify({ orderId: '12345678', text: 'x'.repeat(400 - 32) }).padEnd(400, ' ');
