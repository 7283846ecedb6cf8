import { memberText } from './json.ts';
import { type ReadMessage, toMessage, UnreadableRecord } from './read-message.ts';

/** True for a CloudEvent in structured mode: one JSON object with the event's attributes and its data. */
export function isCloudEvent(body: Readonly<Record<string, unknown>>): boolean {
  return typeof body['specversion'] === 'string';
}

/**
 * Reads a CloudEvent of `https://github.com/cloudevents/spec`, structured JSON. The identity is its `id` within the
 * inbox's configured source; its own `source` is information. Extensions `partitionkey`, `correlationid`,
 * `traceparent` are understood, other attributes become headers.
 */
export function fromCloudEvent(body: Readonly<Record<string, unknown>>, text: string): ReadMessage {
  const {
    id,
    type,
    source,
    data,
    data_base64: base64,
    datacontenttype: contentType,
    partitionkey: partitionKey,
    correlationid: correlationId,
    traceparent,
    ...headers
  } = body;
  const payload = base64 === undefined ? dataText(data, contentType, text) : decode(base64);
  const contentHeader = contentType === undefined ? {} : { datacontenttype: contentType };
  return toMessage({
    id,
    type,
    source,
    partitionKey,
    correlationId,
    traceparent,
    payload,
    headers: { ...headers, ...contentHeader },
  });
}

function dataText(data: unknown, contentType: unknown, text: string): string {
  // Where the data is no JSON, the envelope holds its text as a JSON string.
  if (typeof data === 'string' && !isJsonType(contentType)) return data;
  return memberText(text, 'data') ?? 'null';
}

function isJsonType(contentType: unknown): boolean {
  if (typeof contentType !== 'string') return true;
  return /^[^;]*[/+]json\s*(;|$)/i.test(contentType);
}

function decode(base64: unknown): string {
  if (typeof base64 !== 'string') throw new UnreadableRecord('its data_base64 is no text');
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(base64, 'base64'));
  } catch {
    throw new UnreadableRecord('its data is binary, and a payload is text: take it with a mapping');
  }
}
