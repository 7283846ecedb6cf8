import { Rejected } from '../errors.ts';
import type { OutgoingMessage } from '../message.ts';
import { escapeNoncharacters, nesting } from '../serialise.ts';
import { fromCloudEvent, isCloudEvent } from './cloudevents.ts';
import { asObject, isJson, memberText } from './json.ts';
import { factsOf } from './names.ts';
import { type ReadMessage, toMessage, UnreadableRecord } from './read-message.ts';

/** A message in EventBridge's form. The event's own id is new at each publish, so the identity is in `detail.metadata`. */
export interface EventBridgeEnvelope {
  readonly source: string;
  readonly detailType: string;
  /** `{ metadata, data }`, with the payload's text as it was stored. */
  readonly detail: string;
  /** What counts towards EventBridge's limit: source, detail type and detail. */
  readonly bytes: number;
}

/**
 * EventBridge's limit for a call is "1 MB", in its typings and announcement without saying which: taken as the
 * smaller, less a margin for what it may count besides.
 */
export const eventBridgeBytes = 1_000_000 - 2_000;

const LEVELS = 1_000;
const DETAIL_TYPE_CHARACTERS = 128;

/** Puts a message in EventBridge's form. Throws `Rejected` where EventBridge can never carry it. */
export function toEventBridge(
  message: OutgoingMessage,
  options: { readonly source: string },
): EventBridgeEnvelope {
  const { source } = options;
  const detailType = message.messageType;
  if (detailType.length > DETAIL_TYPE_CHARACTERS) {
    throw new Rejected(
      `the message type has ${detailType.length} characters, and a detail type at most ${DETAIL_TYPE_CHARACTERS}`,
    );
  }
  if (detailType === '') throw new Rejected('the message type is empty, and EventBridge needs a detail type');
  const detail = detailOf(message, source);
  const levels = nesting(detail);
  if (levels > LEVELS) {
    throw new Rejected(`the payload makes the detail ${levels} levels deep, and EventBridge takes ${LEVELS}`);
  }
  const bytes = Buffer.byteLength(source) + Buffer.byteLength(detailType) + Buffer.byteLength(detail);
  if (bytes > eventBridgeBytes) {
    throw new Rejected(`the message takes ${bytes} bytes on EventBridge, which carries ${eventBridgeBytes}`);
  }
  return { source, detailType, detail, bytes };
}

/** True for an event as a rule hands it to a queue with its input unchanged. */
export function isEventBridgeEvent(body: Readonly<Record<string, unknown>>): boolean {
  return typeof body['detail-type'] === 'string' && typeof body['source'] === 'string' && 'detail' in body;
}

/** True for `{ metadata, data }`: a detail that a rule passes on alone (`$.detail`). */
export function isDetail(body: Readonly<Record<string, unknown>>): boolean {
  return asObject(body['metadata']) !== undefined && 'data' in body;
}

/** Reads an event: ours, a CloudEvent in its detail, or another program's, whose identity is the event's own id. */
export function fromEventBridge(body: Readonly<Record<string, unknown>>, text: string): ReadMessage {
  const detail = asObject(body['detail']);
  const detailText = memberText(text, 'detail') ?? 'null';
  if (detail && isDetail(detail)) return fromDetail(detail, detailText, body['detail-type']);
  if (detail && isCloudEvent(detail)) return fromCloudEvent(detail, detailText);
  return toMessage({
    id: body['id'],
    type: body['detail-type'],
    source: body['source'],
    payload: detailText,
  });
}

/** Reads a `{ metadata, data }` of ours. */
export function fromDetail(
  detail: Readonly<Record<string, unknown>>,
  text: string,
  detailType?: unknown,
): ReadMessage {
  const { encoding, headers, ...facts } = asObject(detail['metadata']) ?? {};
  if (headers !== undefined && !asObject(headers)) {
    throw new UnreadableRecord('its metadata.headers is no object');
  }
  return toMessage({
    ...facts,
    type: facts['type'] ?? detailType,
    payload: payloadOf(detail, text, encoding),
    headers: asObject(headers),
  });
}

function payloadOf(detail: Readonly<Record<string, unknown>>, text: string, encoding: unknown): string {
  const { data } = detail;
  if (encoding === undefined) return memberText(text, 'data') ?? 'null';
  if (encoding === 'text' && typeof data === 'string') return data;
  throw new UnreadableRecord(`its metadata.encoding is ${JSON.stringify(encoding)}, which is not known here`);
}

function detailOf(message: OutgoingMessage, source: string): string {
  const { facts, headers } = factsOf(message, source);
  const json = isJson(message.payload);
  const metadata = JSON.stringify({
    ...facts,
    headers: Object.keys(headers).length > 0 ? headers : undefined,
    encoding: json ? undefined : 'text',
  });
  // The payload's text is taken as it is: parsing and writing it again would change its numbers.
  const data = json ? message.payload : JSON.stringify(message.payload);
  // A rule may hand the event to a queue, and SQS refuses these characters.
  return escapeNoncharacters(`{"metadata":${metadata},"data":${data}}`);
}
