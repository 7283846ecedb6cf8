import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect as connectTcp, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { freePort } from '../../../local/postgres.ts';
import { connect } from '../../../shared/store/postgres/connections.ts';

let folder: string;
let ca: string;
let server: Server;
let port: number;
const sockets = new Set<Socket>();

/** A certificate for `localhost` only, signed by itself. False where there is no openssl to make one. */
function certificate(): boolean {
  folder = mkdtempSync(join(tmpdir(), 'relaybox-tls-'));
  try {
    execFileSync(
      'openssl',
      [
        ...[
          'req',
          '-x509',
          '-newkey',
          'ec',
          '-pkeyopt',
          'ec_paramgen_curve:prime256v1',
          '-nodes',
          '-days',
          '2',
        ],
        ...['-subj', '/CN=relaybox test', '-addext', 'subjectAltName=DNS:localhost'],
        ...['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')],
      ],
      { stdio: 'ignore' },
    );
    return true;
  } catch {
    return false;
  }
}

const possible = certificate();

/** PostgreSQL's TLS handshake, and behind it the real server without TLS. */
beforeAll(async () => {
  if (!possible) return;
  ca = readFileSync(join(folder, 'cert.pem'), 'utf8');
  const secureContext = createSecureContext({ key: readFileSync(join(folder, 'key.pem')), cert: ca });
  const target = new URL(inject('postgresUrl'));
  server = createServer((raw) => {
    sockets.add(raw);
    raw.on('error', () => undefined);
    raw.once('data', () => {
      raw.write('S');
      const secured = new TLSSocket(raw, { isServer: true, secureContext });
      const upstream = connectTcp(Number(target.port), target.hostname);
      sockets.add(upstream);
      secured.on('error', () => upstream.destroy());
      upstream.on('error', () => secured.destroy());
      secured.pipe(upstream).pipe(secured);
    });
  });
  port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
});

afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  if (server) await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

async function ask(host: string, options: { ca?: string } = {}): Promise<unknown> {
  const url = new URL(inject('postgresUrl'));
  url.hostname = host;
  url.port = String(port);
  url.searchParams.set('sslmode', 'verify-full');
  const database = connect({ url: url.href }, options);
  try {
    return (await database.query('SELECT 1 AS one')).rows;
  } finally {
    await database.end();
  }
}

describe.skipIf(!possible)('TLS', () => {
  test('a server that nobody vouches for is refused', async () => {
    await expect(ask('localhost')).rejects.toThrow(/self-signed certificate/);
  });

  test('a server that a given root vouches for is trusted', async () => {
    expect(await ask('localhost', { ca })).toEqual([{ one: 1 }]);
  });

  test('not under another name', async () => {
    await expect(ask('127.0.0.1', { ca })).rejects.toThrow(/IP: 127\.0\.0\.1 is not in the cert/);
  });
});
