import type { SQSRecord } from 'aws-lambda';
import { seeded } from './random.ts';

/** Counts what the queues deliver, and has one delivery in ten repeated. */
export class Deliveries {
  /** Deliveries of a message that had been delivered to the same consumer before, whoever was the cause. */
  redelivered = 0;
  /** Deliveries that the consumers took. */
  taken = 0;
  readonly #seen = new Set<string>();
  readonly #offset: number;
  #count = 0;

  constructor(seed: number) {
    this.#offset = Math.floor(seeded(seed)() * 10);
  }

  readonly onDelivery = (record: SQSRecord, delivered: boolean): void => {
    const message = `${record.eventSourceARN} ${idOf(record)}`;
    if (this.#seen.has(message)) this.redelivered += 1;
    this.#seen.add(message);
    if (delivered) this.taken += 1;
  };

  readonly repeat = (record: SQSRecord): boolean => {
    // A repeated one is not repeated again: the day must come to an end.
    if (record.attributes.ApproximateReceiveCount !== '1') return false;
    this.#count += 1;
    return this.#count % 10 === this.#offset;
  };
}

/** The message's identity, which survives that EventBridge makes a new event of each publish. */
function idOf(record: SQSRecord): string {
  const event = JSON.parse(record.body) as { detail?: { metadata?: { id?: string } } };
  return event.detail?.metadata?.id ?? record.messageId;
}
