import { connect, createServer, type Socket } from 'node:net';
import { freePort } from '../../local/postgres.ts';

/** A PostgreSQL server that speaks another language: a real one, behind a wire that changes the texts of its errors. */
export interface ForeignServer {
  /** The URL given, by way of the wire. */
  readonly url: string;
  /** Errors that passed. */
  errors(): number;
  close(): Promise<void>;
}

/** What a person would read, severity included. The binaries that tests run on bring no translations. */
const text = { severity: 'ОШИБКА', message: 'нечто пошло не так', detail: 'подробности' };

/** Fields of an error or notice that `lc_messages` translates; all others are the same in every language. */
const translations: Readonly<Record<string, string>> = {
  S: text.severity,
  M: text.message,
  D: text.detail,
  H: text.detail,
  W: text.detail,
};

/** Puts the wire before the server of a database URL, on loopback and without TLS. */
export async function foreignServer(target: string): Promise<ForeignServer> {
  const to = new URL(target);
  const sockets = new Set<Socket>();
  let count = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(to.port), to.hostname);
    let rest: Buffer<ArrayBufferLike> = Buffer.alloc(0);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => sockets.delete(socket));
    }
    client.pipe(upstream);
    upstream.on('data', (data) => {
      const { whole, begun } = messagesOf(Buffer.concat([rest, data]));
      rest = begun;
      for (const message of whole) {
        const [type] = message;
        if (type === ERROR) count += 1;
        client.write(type === ERROR || type === NOTICE ? translated(message) : message);
      }
    });
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.end());
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const url = new URL(target);
  url.port = String(port);
  return {
    url: url.href,
    errors: () => count,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const ERROR = 'E'.charCodeAt(0);
const NOTICE = 'N'.charCodeAt(0);

/** The server's messages, each a type's byte and a length, which counts itself; the last may not be there as a whole. */
function messagesOf(data: Buffer): { readonly whole: readonly Buffer[]; readonly begun: Buffer } {
  const whole: Buffer[] = [];
  let at = 0;
  while (at + 5 <= data.length && at + 1 + data.readInt32BE(at + 1) <= data.length) {
    const end = at + 1 + data.readInt32BE(at + 1);
    whole.push(data.subarray(at, end));
    at = end;
  }
  return { whole, begun: data.subarray(at) };
}

/** Fields of one byte's name and a text, each ended by a zero, and a zero after the last. */
function translated(message: Buffer): Buffer {
  const fields = message
    .subarray(5)
    .toString('utf8')
    .split('\0')
    .filter((field) => field !== '')
    .map((field) => `${field[0]}${translations[field[0] ?? ''] ?? field.slice(1)}\0`);
  const body = Buffer.from(`${fields.join('')}\0`, 'utf8');
  const head = Buffer.alloc(5);
  head[0] = message[0] as number;
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
