import type { ServerResponse } from 'node:http';

/** What a request is answered with. Without a body there is nothing in it at all. */
export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}

/** Nothing but what this server itself serves may run, be loaded or be talked to; nothing may frame it. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  // Whoever writes HTML from text in the page finds out at once: the browser refuses it.
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const always: Readonly<Record<string, string>> = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** An answer in JSON. */
export function json(status: number, value: unknown): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify(value),
  };
}

/** Sends it, with what every answer of the console says. */
export function send(response: ServerResponse, { status, headers = {}, body = '' }: Reply): void {
  // What was refused may not have been read to its end: nothing more is taken from that connection.
  const closing = status >= 400 ? { connection: 'close' } : {};
  response.writeHead(status, {
    ...always,
    ...headers,
    ...closing,
    'content-length': String(Buffer.byteLength(body)),
  });
  response.end(body);
}
