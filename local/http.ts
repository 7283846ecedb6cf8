import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Listens on loopback, never on another interface, and answers the port. 0 asks for a free one. */
export async function listenOnLoopback(server: Server, port: number): Promise<number> {
  return await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      const address = server.address();
      if (address !== null && typeof address === 'object') resolve(address.port);
      else reject(new Error('the server has no TCP address'));
    });
  });
}

/** Stops listening and cuts what is still connected: idle keep-alive sockets would hold `close` up. */
export async function closeNow(server: Server): Promise<void> {
  if (!server.listening) return;
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** The body was longer than the reader allows. */
export class BodyTooLarge extends Error {}

/** Reads a request's body whole, up to a limit. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    const part = chunk as Buffer;
    bytes += part.length;
    if (bytes > maxBytes) throw new BodyTooLarge(`the body is longer than ${maxBytes} bytes`);
    chunks.push(part);
  }
  return Buffer.concat(chunks);
}

/** Answers JSON in the given content type. */
export function answerJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(text)),
    ...headers,
  });
  response.end(text);
}
