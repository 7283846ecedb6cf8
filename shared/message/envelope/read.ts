import type { Headers } from '../message.ts';
import { keepable } from './characters.ts';
import { fromCloudEvent, isCloudEvent } from './cloudevents.ts';
import { fromDetail, fromEventBridge, isDetail, isEventBridgeEvent } from './eventbridge.ts';
import { parseObject } from './json.ts';
import { names } from './names.ts';
import { type ReadMessage, toMessage, UnreadableRecord } from './read-message.ts';
import { fromSns } from './sns.ts';
import { fromSqs, hasSqsAttributes } from './sqs.ts';

/** A record of an SQS event as Lambda hands it over; `SQSRecord` of `@types/aws-lambda` is one. */
export interface SqsRecord {
  /** The same at each redelivery. */
  readonly messageId: string;
  readonly body: string;
  readonly attributes?: { readonly MessageGroupId?: string | undefined };
  readonly messageAttributes?: Readonly<
    Record<string, { readonly stringValue?: string | undefined } | undefined>
  >;
  readonly eventSourceARN?: string;
}

/** What a mapping of your own makes of a record. */
export interface MappedMessage {
  /** What the sender calls this message, the same at each publish of it. At most 300 characters. */
  readonly id: string;
  /** At most 200 characters. */
  readonly messageType: string;
  /** A string is taken as the payload's text, JSON or not; anything else is written as JSON. */
  readonly payload: unknown;
  readonly headers?: Headers | undefined;
  readonly correlationId?: string | null | undefined;
  readonly partitionKey?: string | null | undefined;
}

/**
 * Reads records that no known envelope fits. Undefined leaves a record to the known ones; what it throws makes the
 * record unreadable, with the error's message as the reason.
 */
export type Mapping = (record: SqsRecord) => MappedMessage | undefined;

/** A record that can be stored but not understood. */
export interface Unreadable {
  readonly reason: string;
  /** SQS's id: the same at each redelivery, so that the record is stored once. */
  readonly id: string;
  /** The body as it came, with what no database keeps replaced. */
  readonly rawBody: string;
  /** What a later reading needs besides the body. */
  readonly headers: Headers;
}

/** What a record turned out to be. */
export type ReadResult = { readonly message: ReadMessage } | { readonly unreadable: Unreadable };

/** Header under which an unreadable row keeps the record's attributes. */
const RAW_ATTRIBUTES = 'relaybox-raw-attributes';

/** Envelopes inside envelopes: an event of EventBridge through SNS is two. */
const ENVELOPES = 3;

/** Reads a record by the mapping given, else by whichever of the known envelopes it is in. Never throws. */
export function readRecord(record: SqsRecord, mapping?: Mapping): ReadResult {
  try {
    return { message: byMapping(record, mapping) ?? read(attributesOf(record), record.body, ENVELOPES) };
  } catch (error) {
    return { unreadable: unreadable(record, error instanceof Error ? error.message : String(error)) };
  }
}

/** Keeps a record as it is, with the reason why it was not understood. */
export function unreadable(record: SqsRecord, reason: string): Unreadable {
  const attributes = Object.fromEntries(attributesOf(record));
  const headers =
    Object.keys(attributes).length > 0 ? { [RAW_ATTRIBUTES]: keepable(JSON.stringify(attributes)) } : {};
  return { reason, id: record.messageId, rawBody: keepable(record.body), headers };
}

/** The record that an unreadable row was made of, to be read again after a mapping was mended. */
export function storedRecord(row: {
  readonly id: string;
  readonly rawBody: string;
  readonly headers: Headers;
}): SqsRecord {
  const attributes = parseObject(row.headers[RAW_ATTRIBUTES] ?? '{}') ?? {};
  const messageAttributes = Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, { stringValue: String(value) }]),
  );
  return { messageId: row.id, body: row.rawBody, messageAttributes };
}

function byMapping(record: SqsRecord, mapping: Mapping | undefined): ReadMessage | undefined {
  if (!mapping) return undefined;
  let mapped: MappedMessage | undefined;
  try {
    mapped = mapping(record);
  } catch (error) {
    throw new UnreadableRecord(`the mapping threw ${String(error)}`);
  }
  if (mapped === undefined) return undefined;
  // JavaScript's callers, whom no compiler tells.
  const given: unknown = mapped;
  if (given instanceof Promise) {
    given.catch(() => undefined);
    throw new UnreadableRecord('the mapping gave a promise: it has to answer at once');
  }
  if (typeof given !== 'object' || given === null) {
    throw new UnreadableRecord(
      `the mapping gave ${given === null ? 'null' : `a ${typeof given}`} instead of a message`,
    );
  }
  const { messageType: type, payload, ...rest } = mapped;
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload);
  if (text === undefined) throw new UnreadableRecord(`the mapping gave a payload of ${typeof payload}`);
  return toMessage({ ...rest, type, payload: text });
}

function read(attributes: ReadonlyMap<string, string>, text: string, depth: number): ReadMessage {
  if (hasSqsAttributes(attributes)) return fromSqs(attributes, text);
  const body = parseObject(text);
  if (!body) throw new UnreadableRecord(`it has no ${names.id} attribute, and its body is no JSON object`);
  const notification = depth > 0 ? fromSns(body) : undefined;
  if (notification) return read(notification.attributes, notification.message, depth - 1);
  if (isEventBridgeEvent(body)) return fromEventBridge(body, text);
  if (isCloudEvent(body)) return fromCloudEvent(body, text);
  if (isDetail(body)) return fromDetail(body, text);
  throw new UnreadableRecord(
    `it has no ${names.id} attribute, and its body is no envelope known here (EventBridge, SNS, CloudEvents)`,
  );
}

function attributesOf(record: SqsRecord): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [name, attribute] of Object.entries(record.messageAttributes ?? {})) {
    if (typeof attribute?.stringValue === 'string') found.set(name, attribute.stringValue);
  }
  return found;
}
