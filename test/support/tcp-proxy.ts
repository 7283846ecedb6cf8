import { connect, createServer, type Socket } from 'node:net';
import { freePort } from '../../local/postgres.ts';

/** A wire between client and server that can be cut, or go silent, as a test likes. */
export interface TcpProxy {
  /** The URL given, by way of the proxy. */
  readonly url: string;
  /** Answers that arrive from now on don't pass, and the sockets stay open: what a dead network looks like. */
  silence(): void;
  /** Like `silence`, but only once the client has sent this text. */
  silenceAfter(text: string): void;
  /** Breaks every connection, and each new one, as a server does that is down. */
  down(): void;
  /** Lets new connections pass again; silent ones stay silent. */
  heal(): void;
  /** Connections the proxy has seen. */
  connections(): number;
  close(): Promise<void>;
}

/** Puts a proxy before the server of a database URL, on loopback. */
export async function tcpProxy(target: string): Promise<TcpProxy> {
  const to = new URL(target);
  const sockets = new Set<Socket>();
  let silent = new Set<Socket>();
  let trigger: string | undefined;
  let count = 0;
  let isDown = false;
  const server = createServer((client) => {
    if (isDown) return client.destroy();
    count += 1;
    const upstream = connect(Number(to.port), to.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => sockets.delete(socket));
    }
    client.on('data', (data) => {
      if (trigger !== undefined && data.includes(trigger)) silent.add(client);
      upstream.write(data);
    });
    upstream.on('data', (data) => silent.has(client) || client.write(data));
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => silent.has(client) || client.destroy());
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const url = new URL(target);
  url.port = String(port);
  return {
    url: url.href,
    silence: () => {
      silent = new Set(sockets);
    },
    silenceAfter: (text) => {
      trigger = text;
    },
    down: () => {
      isDown = true;
      for (const socket of sockets) socket.destroy();
    },
    heal: () => {
      isDown = false;
      trigger = undefined;
    },
    connections: () => count,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
