import { createHash } from 'node:crypto';
import { Rejected } from '../errors.ts';
import type { OutgoingMessage } from '../message.ts';
import { escapeNoncharacters } from '../serialise.ts';
import { refusedBySqs } from './characters.ts';
import { asObject, isJson, parseObject } from './json.ts';
import { factsOf, names } from './names.ts';
import { type ReadMessage, toMessage, UnreadableRecord } from './read-message.ts';

/** A message in SQS's form: the body is the payload, everything else travels in attributes of type String. */
export interface SqsEnvelope {
  readonly body: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly groupId: string | undefined;
  readonly deduplicationId: string | undefined;
  /** What counts towards SQS's limits: the body, and names, types and values of the attributes. */
  readonly bytes: number;
}

/** SQS's limit for a message and for a call, attributes included. */
export const sqsBytes = 1_048_576;

/** Wire names of the facts, by their name in `Facts`. */
const attributeNames = {
  id: names.id,
  type: names.type,
  source: names.source,
  correlationId: names.correlationId,
  partitionKey: names.partitionKey,
  traceparent: names.traceparent,
  hops: names.hops,
} as const;

/** Puts a message in SQS's form. Throws `Rejected` where SQS can never carry it. */
export function toSqs(
  message: OutgoingMessage,
  options: { readonly source: string | undefined; readonly fifo: boolean },
): SqsEnvelope {
  const body = bodyOf(message.payload);
  const attributes = attributesOf(message, options.source);
  const bytes = sizeOf(body, attributes);
  if (bytes > sqsBytes) {
    throw new Rejected(
      `the message takes ${bytes} bytes on SQS, which carries ${sqsBytes} (payload ${Buffer.byteLength(body)})`,
    );
  }
  const { partitionKey, id, replay } = message;
  return {
    body,
    attributes,
    // On a standard queue the group only makes it a fair one; an unkeyed message needs none there.
    groupId: partitionKey === null ? (options.fifo ? id : undefined) : groupIdOf(partitionKey),
    // A replay within five minutes of the first send would be taken for it and dropped.
    deduplicationId: options.fifo ? (replay > 0 ? `${id}.${replay}` : id) : undefined,
    bytes,
  };
}

/** Reads a body that came with Relaybox's attributes. The body is the payload, whatever it is. */
export function fromSqs(attributes: ReadonlyMap<string, string>, body: string): ReadMessage {
  const packed = unpack(attributes.get(names.headers));
  const facts = Object.fromEntries(
    Object.entries(attributeNames).map(([fact, name]) => [fact, attributes.get(name) ?? packed[name]]),
  );
  const { [names.traceparent]: _, ...headers } = packed;
  return toMessage({ ...facts, payload: body, headers });
}

/** True where the attributes are Relaybox's. */
export function hasSqsAttributes(attributes: ReadonlyMap<string, string>): boolean {
  return attributes.has(names.id) || attributes.has(names.type);
}

/** A partition key as a message group: itself where it is a legal one, else its digest, the same each time. */
function groupIdOf(partitionKey: string): string {
  if (/^[\x21-\x7E]{1,128}$/.test(partitionKey)) return partitionKey;
  return createHash('sha256').update(partitionKey).digest('hex');
}

function bodyOf(payload: string): string {
  if (payload === '') throw new Rejected('the payload is empty, and SQS carries no empty body');
  const refused = refusedBySqs(payload);
  if (!refused) return payload;
  if (isJson(payload)) return escapeNoncharacters(payload);
  throw new Rejected(
    `the payload holds ${refused.character} at position ${refused.position}, which SQS does not carry, and is no JSON in which it could be escaped`,
  );
}

function attributesOf(message: OutgoingMessage, source: string | undefined): Record<string, string> {
  const { facts, headers } = factsOf(message, source);
  const attributes: Record<string, string> = {};
  const packed: [string, string][] = Object.entries(headers);
  for (const [fact, name] of Object.entries(attributeNames)) {
    const value = facts[fact as keyof typeof attributeNames];
    if (value === undefined) continue;
    // JSON can escape what an attribute can't carry as it is: nothing, or a character that SQS refuses.
    if (value === '' || refusedBySqs(value)) packed.push([name, value]);
    else attributes[name] = value;
  }
  if (packed.length > 0) {
    attributes[names.headers] = escapeNoncharacters(JSON.stringify(Object.fromEntries(packed)));
  }
  return attributes;
}

function sizeOf(body: string, attributes: Readonly<Record<string, string>>): number {
  let bytes = Buffer.byteLength(body);
  for (const [name, value] of Object.entries(attributes)) {
    bytes += name.length + 'String'.length + Buffer.byteLength(value);
  }
  return bytes;
}

function unpack(text: string | undefined): Readonly<Record<string, unknown>> {
  if (text === undefined) return {};
  const packed = asObject(parseObject(text));
  if (!packed) throw new UnreadableRecord(`its attribute ${names.headers} is no JSON object`);
  return packed;
}
