import { defaults } from '../delivery/defaults.ts';
import { silent, type Telemetry } from '../delivery/telemetry.ts';
import { MessageRefused } from '../message/errors.ts';
import type { DestinationTable } from '../message/limits.ts';
import type { AddResult, NewMessage, OutboxRow } from '../message/message.ts';
import { toOutboxRow } from '../message/validate.ts';
import { contextHeaders } from './context.ts';

/** What `add` answers for a list: one result for each message, in the order given. */
export type AddResults<Messages extends readonly NewMessage[]> = {
  -readonly [Index in keyof Messages]: AddResult;
};

/** Adds messages to the outbox within the caller's own transaction. */
export interface Outbox<Tx> {
  /**
   * Adds one message. It will be delivered if the transaction commits, and never if it rolls back.
   * Throws `MessageRefused` before anything is written where the message could never be delivered.
   */
  add(tx: Tx, message: NewMessage): Promise<AddResult>;
  /** Adds many in one round trip (per 1,000 messages or 8 MiB of payload); all are checked before any is written. */
  add<const Messages extends readonly NewMessage[]>(
    tx: Tx,
    messages: Messages,
  ): Promise<AddResults<Messages>>;
  /** Tells the relay, after COMMIT, that there is work. Best effort: waits 200 ms at most and never rejects; the sweep is the guarantee. */
  wake(): Promise<void>;
}

/** Writes checked rows in the caller's transaction: what a database has to bring to be an outbox. */
export interface ProducerStore<Tx> {
  /** Answers the ids that were not there before. One round trip. */
  insert(tx: Tx, rows: readonly OutboxRow[]): Promise<ReadonlySet<string>>;
}

/** Options of a producer, whatever the database. */
export interface ProducerOptions {
  /** What is known of the destinations; one that isn't listed gets the limits that hold on every transport. */
  readonly destinations?: DestinationTable;
  /** Sends the wake. @default to the queue of `RELAYBOX_WAKE_QUEUE_URL`; without one the sweep finds the messages */
  readonly wake?: () => Promise<void>;
  /**
   * Asked at each `add`: the W3C trace context of messages that have no `traceparent` of their own, and of no message that
   * is being handled. @default the invocation's on Lambda, from the id that it has for X-Ray
   */
  readonly traceparent?: () => string | undefined;
  readonly telemetry?: Telemetry;
}

const maxRows = 1000;
const maxBytes = 8 * 1024 * 1024;

/** Makes an outbox of a store. */
export function createOutbox<Tx>(store: ProducerStore<Tx>, options: ProducerOptions = {}): Outbox<Tx> {
  const telemetry = options.telemetry ?? silent;
  const known = new Map(Object.entries(options.destinations ?? {}));

  async function addAll(tx: Tx, messages: readonly NewMessage[]): Promise<AddResult[]> {
    const traceparent = options.traceparent?.();
    // What is handled knows better what caused its messages than the invocation, which may handle many.
    const headers = { ...(traceparent !== undefined && { traceparent }), ...contextHeaders() };
    // Not `map`, which would step over a hole in the list.
    const rows = Array.from(messages, (message, index) =>
      numbered(index, messages.length, () => toOutboxRow(message, known.get(message?.destination), headers)),
    );
    refuseOneIdForTwo(rows);
    const results: AddResult[] = [];
    for (const chunk of chunks(rows)) {
      const fresh = new Set(await store.insert(tx, chunk));
      // Of an id given twice in one call, the first is the one that was added.
      for (const { id } of chunk) results.push({ id, added: fresh.delete(id) });
    }
    count(telemetry, rows, results);
    return results;
  }

  async function add(tx: Tx, given: NewMessage | readonly NewMessage[]): Promise<unknown> {
    if (Array.isArray(given)) return await addAll(tx, given);
    const [result] = await addAll(tx, [given as NewMessage]);
    return result;
  }

  return { add: add as Outbox<Tx>['add'], wake: () => wake(options.wake, telemetry) };
}

/** Says which message of a list was refused. */
function numbered(index: number, of: number, work: () => OutboxRow): OutboxRow {
  try {
    return work();
  } catch (error) {
    if (of === 1 || !(error instanceof MessageRefused)) throw error;
    throw new MessageRefused(error.field, error.limit, `${error.actual} (message ${index + 1} of ${of})`);
  }
}

/** An id is one message: of two destinations the second would answer `added: false`, and never get it. */
function refuseOneIdForTwo(rows: readonly OutboxRow[]): void {
  const destinations = new Map<string, string>();
  for (const { id, destination } of rows) {
    const first = destinations.get(id) ?? destination;
    if (first !== destination) {
      throw new MessageRefused(
        'id',
        "another for each destination: put the destination into messageId('…', destination)",
        `${id} for both ${first} and ${destination}`,
      );
    }
    destinations.set(id, destination);
  }
}

function* chunks(rows: readonly OutboxRow[]): Generator<OutboxRow[]> {
  let chunk: OutboxRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    if (chunk.length === maxRows || (chunk.length > 0 && bytes + row.payload.length > maxBytes)) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    chunk.push(row);
    bytes += row.payload.length;
  }
  if (chunk.length > 0) yield chunk;
}

function count(telemetry: Telemetry, rows: readonly OutboxRow[], results: readonly AddResult[]): void {
  const added = new Map<string, number>();
  for (const [index, { destination }] of rows.entries()) {
    if (results[index]?.added) added.set(destination, (added.get(destination) ?? 0) + 1);
  }
  for (const [destination, value] of added) telemetry.count('Added', value, destination);
}

async function wake(send: (() => Promise<void>) | undefined, telemetry: Telemetry): Promise<void> {
  if (send === undefined) return;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, defaults.wakeTimeoutMs);
  });
  const sent = (async () => await send())().catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    telemetry.logger.warn('the relay could not be woken; the sweep will find the messages', { reason });
  });
  await Promise.race([sent, late]);
  clearTimeout(timer);
}
