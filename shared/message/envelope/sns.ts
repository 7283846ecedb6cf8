/**
 * What SNS puts around a message for a queue, unless the subscription says raw delivery; with raw delivery the
 * record looks as if it had been sent to SQS.
 */
export interface SnsNotification {
  readonly message: string;
  readonly attributes: ReadonlyMap<string, string>;
}

/** Unwraps SNS's envelope; undefined where the body is something else. */
export function fromSns(body: Readonly<Record<string, unknown>>): SnsNotification | undefined {
  const { Type: type, TopicArn: topic, Message: message, MessageAttributes: attributes } = body;
  if (type !== 'Notification' || typeof topic !== 'string' || typeof message !== 'string') return undefined;
  return { message, attributes: attributesOf(attributes) };
}

function attributesOf(attributes: unknown): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [name, attribute] of Object.entries(attributes ?? {})) {
    const value: unknown = (attribute as { readonly Value?: unknown } | null)?.Value;
    if (typeof value === 'string') found.set(name, value);
  }
  return found;
}
