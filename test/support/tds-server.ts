import { createServer, type Socket } from 'node:net';

/** What a client sent, as far as a test wants to know. */
export interface TdsRequest {
  readonly kind: 'login' | 'batch' | 'rpc' | 'begin' | 'commit' | 'rollback' | 'cancel' | 'other';
  /** The session was to be reset before it. */
  readonly reset: boolean;
  /** The connection's number, from 1. */
  readonly connection: number;
  includes(text: string): boolean;
}

/** What it gets: rows of one whole number named `n`, an error, or silence. */
export interface TdsReply {
  readonly number?: number;
  readonly error?: number;
  readonly silent?: boolean;
  /** Ends the connection instead. */
  readonly hangUp?: boolean;
  /** Where it is a commit: that of an inner transaction, so that the outer one goes on. */
  readonly nested?: boolean;
  /** Tells that the transaction was rolled back, or committed, by what was run, or committed and followed by another. */
  readonly ended?: 'rollback' | 'commit' | 'commit and begin';
}

/** As much of the wire protocol of SQL Server as connections need: no SQL is understood. */
export interface TdsServer {
  readonly port: number;
  readonly requests: TdsRequest[];
  readonly open: () => number;
  close(): Promise<void>;
}

const kinds = { 16: 'login', 1: 'batch', 3: 'rpc', 6: 'cancel' } as const;
const transactions = { 5: 'begin', 7: 'commit', 8: 'rollback' } as const;

/** Starts one on a free port of this machine. */
export async function tdsServer(
  answer: (request: TdsRequest) => TdsReply | undefined = () => undefined,
): Promise<TdsServer> {
  const requests: TdsRequest[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    const connection = ++connections;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    messages(socket, (type, status, body) => {
      if (type === 0x12) {
        socket.write(packet(prelogin));
        return;
      }
      const request: TdsRequest = {
        kind: type === 0x0e ? transactionKind(body) : (kinds[type as keyof typeof kinds] ?? 'other'),
        reset: (status & 0x08) !== 0,
        connection,
        includes: (text) => body.includes(Buffer.from(text, 'utf16le')),
      };
      requests.push(request);
      const reply = answer(request) ?? {};
      if (reply.hangUp) socket.destroy();
      else if (!reply.silent) socket.write(packet(replied(request, reply)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return {
    port: address.port,
    requests,
    open: () => sockets.size,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Puts packets together to messages: a header of eight bytes says how long each is, and which is the last. */
function messages(socket: Socket, take: (type: number, status: number, body: Buffer) => void): void {
  let pending = Buffer.alloc(0);
  let bodies: Buffer[] = [];
  let first = 0;
  socket.on('data', (data: Buffer) => {
    pending = Buffer.concat([pending, data]);
    while (pending.length >= 8 && pending.length >= pending.readUInt16BE(2)) {
      const length = pending.readUInt16BE(2);
      const [type = 0, status = 0] = pending;
      if (bodies.length === 0) first = status;
      bodies.push(pending.subarray(8, length));
      pending = pending.subarray(length);
      if ((status & 1) === 0) continue;
      const body = Buffer.concat(bodies);
      bodies = [];
      take(type, first, body);
    }
  });
}

/** The kind stands behind the headers, whose length stands first. */
function transactionKind(body: Buffer): TdsRequest['kind'] {
  const type = body.readUInt16LE(body.readUInt32LE(0));
  return transactions[type as keyof typeof transactions] ?? 'other';
}

function replied(request: TdsRequest, reply: TdsReply): Buffer {
  const parts: Buffer[] = [];
  if (reply.error !== undefined) parts.push(errorToken(reply.error));
  if (reply.ended === 'rollback' || (request.kind === 'rollback' && !reply.error)) parts.push(change(10));
  if (reply.ended === 'commit' || (request.kind === 'commit' && !reply.error && !reply.nested)) {
    parts.push(change(9));
  }
  if (reply.ended === 'commit and begin') parts.push(change(9), change(8, 2));
  if (request.kind === 'begin' && !reply.error) parts.push(change(8));
  if (request.kind === 'login' && !reply.error) parts.push(loginAck);
  if (reply.number !== undefined) parts.push(row(reply.number));
  if (reply.number !== undefined && request.kind === 'rpc') parts.push(done(0xff, 0x11, 1));
  const status = request.kind === 'cancel' ? 0x20 : reply.error === undefined ? 0 : 0x02;
  return Buffer.concat([...parts, done(request.kind === 'rpc' ? 0xfe : 0xfd, status)]);
}

function packet(body: Buffer): Buffer {
  const header = Buffer.from([0x04, 0x01, 0, 0, 0, 0, 1, 0]);
  header.writeUInt16BE(body.length + 8, 2);
  return Buffer.concat([header, body]);
}

/** Version, no encryption, no instance, no MARS. */
const prelogin = Buffer.from([
  ...[0, 0, 21, 0, 6, 1, 0, 27, 0, 1, 2, 0, 28, 0, 1, 4, 0, 29, 0, 1, 0xff],
  ...[16, 0, 0, 0, 0, 0, 2, 0, 0],
]);

const loginAck = token(
  0xad,
  Buffer.concat([Buffer.from([1, 0x74, 0, 0, 4]), text('test'), Buffer.from([16, 0, 0, 0])]),
);

function errorToken(number: number): Buffer {
  const head = Buffer.alloc(6);
  head.writeInt32LE(number);
  head[4] = 1;
  head[5] = 14;
  const message = Buffer.from('refused by the test', 'utf16le');
  const length = Buffer.alloc(2);
  length.writeUInt16LE(message.length / 2);
  return token(0xaa, Buffer.concat([head, length, message, text('test'), text(''), Buffer.alloc(4)]));
}

/** Begin (8), commit (9) or rollback (10) of the transaction with the number. */
function change(type: 8 | 9 | 10, number = 1): Buffer {
  const id = [8, number, 0, 0, 0, 0, 0, 0, 0];
  return token(0xe3, Buffer.from(type === 8 ? [type, ...id, 0] : [type, 0, ...id]));
}

function row(value: number): Buffer {
  const number = Buffer.alloc(4);
  number.writeInt32LE(value);
  return Buffer.concat([
    Buffer.from([0x81, 1, 0, 0, 0, 0, 0, 0, 0, 0x26, 4]),
    text('n'),
    Buffer.from([0xd1, 4]),
    number,
  ]);
}

function done(type: number, status: number, rows = 0): Buffer {
  return Buffer.from([type, status, 0, 0, 0, rows, 0, 0, 0, 0, 0, 0, 0]);
}

function token(type: number, body: Buffer): Buffer {
  const head = Buffer.from([type, 0, 0]);
  head.writeUInt16LE(body.length, 1);
  return Buffer.concat([head, body]);
}

function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value, 'utf16le')]);
}
