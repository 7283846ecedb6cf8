type Environment = Readonly<Record<string, string | undefined>>;

/** Lambda's own record of the invocation that runs: with several at once in a process, the environment holds none. */
interface LambdaGlobal {
  readonly awslambda?: {
    readonly InvokeStore?: { getXRayTraceId?(): string | undefined } | undefined;
  };
}

/**
 * The W3C trace context of the invocation that runs, by the id that Lambda gives it for X-Ray. Undefined outside of
 * Lambda, and where the id names no parent.
 */
export function invocationTraceparent(env: Environment = process.env): string | undefined {
  const store = (globalThis as LambdaGlobal).awslambda?.InvokeStore;
  return ofXRay(store?.getXRayTraceId?.() ?? env['_X_AMZN_TRACE_ID'] ?? '');
}

/**
 * The trace context in the headers of an HTTP event, as API Gateway (either version), function URLs and load balancers
 * give them; names in any case. Undefined where there is none, or none that is valid: a caller's mistake costs its own
 * trace, and no message.
 */
export function eventTraceparent(event: unknown): string | undefined {
  const { headers, multiValueHeaders } = fieldsOf(event);
  return ofW3C(headerOf(headers)) ?? ofW3C(headerOf(multiValueHeaders));
}

/** `Root=1-<8 hex>-<24 hex>;Parent=<16 hex>;Sampled=<0|1|?>`, in any order and with other parts between. */
function ofXRay(id: string): string | undefined {
  const root = /(?:^|;)\s*Root=1-([0-9a-f]{8})-([0-9a-f]{24})(?:;|$)/i.exec(id);
  const parent = /(?:^|;)\s*Parent=([0-9a-f]{16})(?:;|$)/i.exec(id)?.[1];
  if (!root || parent === undefined) return undefined;
  const sampled = /(?:^|;)\s*Sampled=1(?:;|$)/.test(id) ? '01' : '00';
  return ofW3C(`00-${root[1]}${root[2]}-${parent}-${sampled}`.toLowerCase());
}

const W3C = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** The text where it is a trace context. Of a later version the part that this one knows, as W3C asks for. */
function ofW3C(text: unknown): string | undefined {
  const [, version, trace, parent, flags, more] = W3C.exec(typeof text === 'string' ? text.trim() : '') ?? [];
  if (version === undefined || (version === '00' && more !== undefined)) return undefined;
  return `00-${trace}-${parent}-${flags}`;
}

function headerOf(headers: unknown): unknown {
  const found = Object.entries(fieldsOf(headers)).find(([name]) => name.toLowerCase() === 'traceparent');
  return Array.isArray(found?.[1]) ? found[1][0] : found?.[1];
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
