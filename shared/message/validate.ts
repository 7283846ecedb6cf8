import { defaults } from '../delivery/defaults.ts';
import { UNREADABLE_TYPE } from './envelope/names.ts';
import { MessageRefused } from './errors.ts';
import { isUuid, newId } from './id.ts';
import {
  columns,
  type DestinationLimits,
  eventBridgeBytes,
  eventBridgeDetailType,
  eventBridgeEntryBytes,
  eventBridgeNesting,
  maxDelaySeconds,
  reservedHeaderPrefix,
  sqsBytes,
  sqsMessageBytes,
} from './limits.ts';
import type { Headers, NewMessage, OutboxRow } from './message.ts';
import { nesting, serialisePayload } from './serialise.ts';
import { characters, firstUnsendable, unsendable, unstorable } from './text.ts';

/**
 * Checks a message and serialises it. Throws `MessageRefused` for one that the database or the broker could never carry:
 * here it costs an error message, later it would be poison.
 *
 * @param known what is known of the destination; where nothing is, the size that every transport takes holds
 * @param added headers that Relaybox sets itself
 */
export function toOutboxRow(
  message: NewMessage,
  known: DestinationLimits | undefined,
  added: Headers = {},
): OutboxRow {
  if (typeof message !== 'object' || message === null) {
    throw new MessageRefused(
      'message',
      'an object with destination, messageType and payload',
      kindOf(message),
    );
  }
  const row: OutboxRow = {
    id: idOf(message.id),
    destination: destinationOf(message.destination),
    messageType: textOf('messageType', message.messageType),
    payload: serialisePayload(message.payload),
    headers: headersOf(message.headers, added),
    correlationId: optionalText('correlationId', message.correlationId),
    partitionKey: optionalText('partitionKey', message.partitionKey),
    delaySeconds: delayOf(message),
    maxRetries: maxRetriesOf(message.maxRetries),
  };
  refuseUndeliverable(row, known);
  return row;
}

function idOf(id: unknown): string {
  if (id === undefined) return newId();
  if (typeof id !== 'string' || !isUuid(id)) {
    throw new MessageRefused('id', 'a UUID; messageId(…) makes one of a business key', shown(id));
  }
  return id.toLowerCase();
}

function destinationOf(destination: unknown): string {
  const limit = `1 to ${columns.destination} characters of A–Z a–z 0–9 . _ -`;
  if (typeof destination !== 'string') throw new MessageRefused('destination', limit, kindOf(destination));
  if (destination.length > columns.destination) {
    throw new MessageRefused('destination', limit, `${destination.length} characters`);
  }
  if (!/^[A-Za-z0-9._-]+$/.test(destination))
    throw new MessageRefused('destination', limit, shown(destination));
  return destination;
}

function textOf(field: 'messageType' | 'correlationId' | 'partitionKey', text: unknown): string {
  const limit = `1 to ${columns[field]} characters`;
  if (typeof text !== 'string') throw new MessageRefused(field, limit, kindOf(text));
  const length = characters(text);
  if (field === 'messageType' && text === UNREADABLE_TYPE) {
    throw new MessageRefused(field, "a type of the application's own", shown(text));
  }
  if (length === 0 || length > columns[field]) throw new MessageRefused(field, limit, `${length} characters`);
  if (unsendable(text)) {
    throw new MessageRefused(
      field,
      'text that PostgreSQL and SQS can carry',
      `text with ${firstUnsendable(text)}`,
    );
  }
  return text;
}

function optionalText(field: 'correlationId' | 'partitionKey', text: unknown): string | null {
  return text === undefined || text === null ? null : textOf(field, text);
}

function headersOf(headers: unknown, added: Headers): Headers | null {
  if (headers !== undefined && headers !== null && !isPlain(headers)) {
    throw new MessageRefused(
      'headers',
      'a plain object of texts, e.g. Object.fromEntries(headers)',
      kindOf(headers),
    );
  }
  const given = Object.entries(headers ?? {}).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) checkHeader(name, value);
  const all: Headers = Object.fromEntries([...Object.entries(added), ...given]);
  return Object.keys(all).length === 0 ? null : all;
}

/** A Map or fetch's Headers have no members to read: they would be lost. An object of another realm is plain too. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function checkHeader(name: string, value: unknown): asserts value is string {
  const field = `headers.${name.toWellFormed().replaceAll('\0', '\uFFFD').slice(0, 100)}`;
  if (name === '')
    throw new MessageRefused('headers', 'named by at least one character', 'one without a name');
  if (name.toLowerCase().startsWith(reservedHeaderPrefix)) {
    throw new MessageRefused(field, `named otherwise: "${reservedHeaderPrefix}" is reserved`, 'named so');
  }
  if (typeof value !== 'string') {
    throw new MessageRefused(field, 'text; numbers, dates and objects belong in the payload', kindOf(value));
  }
  // Headers travel as JSON, which can escape every other character; jsonb refuses these two even escaped.
  if (unstorable(name) || unstorable(value)) {
    throw new MessageRefused(
      field,
      'text that PostgreSQL can carry',
      'text with a NUL or half of a surrogate pair',
    );
  }
  // This one travels as an attribute of its own.
  if (name === 'traceparent' && (value === '' || value.length > 64 || unsendable(value))) {
    throw new MessageRefused(
      field,
      'a W3C trace context of 1 to 64 characters',
      `${value.length} characters`,
    );
  }
}

function delayOf(message: NewMessage): number | null {
  const { delaySeconds, partitionKey } = message;
  if (delaySeconds === undefined || delaySeconds === null) return null;
  const limit = `seconds, 0 to ${maxDelaySeconds}`;
  if (typeof delaySeconds !== 'number') throw new MessageRefused('delaySeconds', limit, kindOf(delaySeconds));
  if (!(delaySeconds >= 0 && delaySeconds <= maxDelaySeconds)) {
    throw new MessageRefused('delaySeconds', limit, String(delaySeconds));
  }
  if (partitionKey !== undefined && partitionKey !== null) {
    throw new MessageRefused(
      'delaySeconds',
      'left out where partitionKey is given, since later messages of the key would have to wait too',
      `${delaySeconds} with a partitionKey`,
    );
  }
  return delaySeconds;
}

function maxRetriesOf(maxRetries: unknown): number {
  if (maxRetries === undefined) return defaults.unlimitedRetries;
  const limit = `a whole number, 0 to ${defaults.unlimitedRetries}`;
  if (typeof maxRetries !== 'number') throw new MessageRefused('maxRetries', limit, kindOf(maxRetries));
  if (!Number.isInteger(maxRetries) || maxRetries < 0 || maxRetries > defaults.unlimitedRetries) {
    throw new MessageRefused('maxRetries', limit, String(maxRetries));
  }
  return maxRetries;
}

function refuseUndeliverable(row: OutboxRow, known: DestinationLimits | undefined): void {
  const sizes: [limit: number, bytes: number, of: string][] = [];
  if (known?.type !== 'eventbridge') sizes.push([known?.maxBytes ?? sqsMessageBytes, sqsBytes(row), 'SQS']);
  if (known?.type !== 'sqs') sizes.push([eventBridgeEntryBytes, eventBridgeBytes(row), 'EventBridge']);
  for (const [limit, bytes, transport] of sizes) {
    if (bytes <= limit) continue;
    const whole = `with headers and envelope (${transport}'s limit)`;
    throw new MessageRefused('payload', `at most ${limit} bytes ${whole}`, `${bytes} bytes`);
  }
  if (known?.type !== 'eventbridge') return;
  const type = row.messageType.length;
  if (type > eventBridgeDetailType) {
    const limit = `at most ${eventBridgeDetailType} characters for an event bus (its detail-type)`;
    throw new MessageRefused('messageType', limit, `${type} characters`);
  }
  const levels = nesting(row.payload);
  if (levels > eventBridgeNesting) {
    throw new MessageRefused(
      'payload',
      `nested at most ${eventBridgeNesting} levels deep for an event bus`,
      `${levels} levels deep`,
    );
  }
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  return typeof value === 'object' && kind !== 'Object' ? `a ${kind}` : `of type ${typeof value}`;
}

function shown(value: unknown): string {
  if (typeof value !== 'string') return kindOf(value);
  const short = value.length > 60 ? `${value.slice(0, 60)}…` : value;
  return JSON.stringify(short.toWellFormed());
}
