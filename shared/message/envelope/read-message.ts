import type { Headers } from '../message.ts';
import { characters } from '../text.ts';
import { refusedByDatabase } from './characters.ts';
import { type Facts, names, reservedPrefix, UNREADABLE_TYPE } from './names.ts';

/** A message as it came by the wire, the same by every route. */
export interface ReadMessage {
  readonly id: string;
  readonly messageType: string;
  /** The payload's text as the sender's row had it: JSON, or any text where the sender wrote no JSON. */
  readonly payload: string;
  /** The application's headers, and Relaybox's `relaybox-source` and `relaybox-hops`. */
  readonly headers: Headers;
  readonly correlationId: string | null;
  readonly partitionKey: string | null;
}

/** Thrown while reading a record that can be stored but not understood; `read` turns it into an answer. */
export class UnreadableRecord extends Error {}

/** What an envelope gives before it is checked: other programs may have written any of it. */
export interface Candidate extends Readonly<Partial<Record<keyof Facts, unknown>>> {
  readonly payload: string;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
}

/** What the inbox's columns hold, in characters. */
const columns = { id: 300, type: 200, correlationId: 200, partitionKey: 200 } as const;

/** Checks what an envelope gave and makes a message of it. Ids are taken exactly as they are: no trimming, no case folding. */
export function toMessage(candidate: Candidate): ReadMessage {
  const id = needed('id', candidate.id, columns.id);
  const messageType = needed('message type', candidate.type, columns.type);
  if (messageType === UNREADABLE_TYPE) {
    throw new UnreadableRecord(
      `its message type is ${UNREADABLE_TYPE}, which is kept for what can't be read`,
    );
  }
  const refused = refusedByDatabase(candidate.payload);
  if (refused) throw new UnreadableRecord(`the payload ${refused}`);
  return {
    id,
    messageType,
    payload: candidate.payload,
    headers: toHeaders(candidate),
    correlationId: optional('correlation id', candidate.correlationId, columns.correlationId),
    partitionKey: optional('partition key', candidate.partitionKey, columns.partitionKey),
  };
}

function needed(what: string, value: unknown, limit: number): string {
  const text = optional(what, value, limit);
  if (text === null || text === '') throw new UnreadableRecord(`it has no ${what}`);
  return text;
}

function optional(what: string, value: unknown, limit: number): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string') throw new UnreadableRecord(`its ${what} is no text but ${typeof value}`);
  const length = characters(value);
  if (length > limit) {
    throw new UnreadableRecord(`its ${what} has ${length} characters, and at most ${limit} can be stored`);
  }
  const refused = refusedByDatabase(value);
  if (refused) throw new UnreadableRecord(`its ${what} ${refused}`);
  return value;
}

function toHeaders(candidate: Candidate): Headers {
  const given = Object.entries(candidate.headers ?? {}).filter(([name]) => !name.startsWith(reservedPrefix));
  const own: [string, unknown][] = [
    [names.traceparent, candidate.traceparent],
    [names.source, candidate.source],
    [names.hops, candidate.hops],
  ];
  const headers = [...given, ...own].filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(headers.map(([name, value]) => [headerText(name), headerText(value)]));
}

/** A header travels as text; what another program sent as a number or object is kept as its JSON. */
function headerText(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const refused = refusedByDatabase(text);
  if (refused) throw new UnreadableRecord(`a header ${refused}`);
  return text;
}
