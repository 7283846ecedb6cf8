import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { FunctionHost } from '../host.ts';
import { answerJson, BodyTooLarge, closeNow, listenOnLoopback, readBody } from '../http.ts';

export interface HttpTriggerOptions {
  readonly host: FunctionHost;
  /** Function for a method and path, e.g. `{ 'POST /orders': 'place-order' }`. */
  readonly routes: Readonly<Record<string, string>>;
  /** @default a free one */
  readonly port?: number;
}

/** Function URLs on loopback. */
export interface HttpTrigger {
  readonly url: string;
  stop(): Promise<void>;
}

/** Lambda's limit of a synchronous payload. */
const maxBodyBytes = 6 * 1024 * 1024;

/** Invokes functions over HTTP, with the event and the answer of a function URL (payload format 2.0). */
export async function startHttpTrigger(options: HttpTriggerOptions): Promise<HttpTrigger> {
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const name = options.routes[`${request.method} ${url.pathname}`];
    if (name === undefined) {
      const known = Object.keys(options.routes).join(', ');
      return answerJson(response, 404, { message: `there is only: ${known}` });
    }
    const body = await readBody(request, maxBodyBytes);
    try {
      answer(response, await options.host.invoke(name, toEvent(request, url, body)));
    } catch {
      answerJson(response, 502, { message: 'Internal Server Error' });
    }
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) =>
      answerJson(response, error instanceof BodyTooLarge ? 413 : 500, { message: String(error) }),
    );
  });
  const port = await listenOnLoopback(server, options.port ?? 0);
  return { url: `http://127.0.0.1:${port}`, stop: () => closeNow(server) };
}

/** A request as a function URL passes it. Exported for programs that invoke such a function without HTTP. */
export function httpEvent(method: string, path: string, body: string): Record<string, unknown> {
  return event({
    method,
    path,
    query: '',
    headers: { 'content-type': 'application/json' },
    body,
    sourceIp: '127.0.0.1',
  });
}

function toEvent(request: IncomingMessage, url: URL, body: Buffer): Record<string, unknown> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(',') : value;
  }
  return event({
    method: request.method ?? 'GET',
    path: url.pathname,
    query: url.search.slice(1),
    headers,
    body: body.toString('utf8'),
    sourceIp: request.socket.remoteAddress ?? '127.0.0.1',
  });
}

function event(parts: {
  method: string;
  path: string;
  query: string;
  headers: Record<string, string>;
  body: string;
  sourceIp: string;
}): Record<string, unknown> {
  const { method, path, query, headers, body, sourceIp } = parts;
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: query,
    headers,
    requestContext: {
      requestId: randomUUID(),
      routeKey: '$default',
      stage: '$default',
      http: { method, path, protocol: 'HTTP/1.1', sourceIp, userAgent: headers['user-agent'] ?? '' },
      timeEpoch: Date.now(),
    },
    ...(body === '' ? {} : { body }),
    isBase64Encoded: false,
  };
}

/** A result with a status code is a response; anything else is its JSON body. */
function answer(response: ServerResponse, result: unknown): void {
  const shaped = result as {
    statusCode?: number;
    headers?: Record<string, string>;
    body?: string;
    isBase64Encoded?: boolean;
  } | null;
  if (shaped === null || typeof shaped !== 'object' || shaped.statusCode === undefined) {
    answerJson(response, 200, result);
    return;
  }
  const body = Buffer.from(shaped.body ?? '', shaped.isBase64Encoded ? 'base64' : 'utf8');
  response.writeHead(shaped.statusCode, {
    'content-type': 'application/json',
    ...shaped.headers,
    'content-length': String(body.length),
  });
  response.end(body);
}
