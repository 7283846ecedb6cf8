import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { pageFiles } from '../../cli/console/page.ts';
import {
  type ConsoleProcess,
  enter,
  type Sent,
  startConsoleProcess,
  type Visitor,
} from '../support/console.ts';
import { createOperations, failedColumns, type OperationsFixture } from '../support/operations.ts';

let t: OperationsFixture;
let console: ConsoleProcess;
let visitor: Visitor;

beforeAll(async () => {
  t = await createOperations();
  console = await startConsoleProcess(['--url', t.url]);
  visitor = await enter(console);
});
afterAll(async () => {
  await console.stop();
  await t.drop();
});
beforeEach(async () => {
  await t.pool.query('TRUNCATE outbox_messages, outbox_leases, outbox_lanes, inbox_messages, inbox_keys');
});

describe('who comes in', () => {
  it('opens once for the printed token, and takes it out of the address', async () => {
    expect(visitor.entered).toMatchObject({ status: 303, body: '' });
    expect(visitor.entered.headers.location).toBe(visitor.base);
    expect(visitor.entered.headers['set-cookie']?.[0]).toMatch(
      new RegExp(`^relaybox-console=[\\w-]{43}; Path=${visitor.base}; HttpOnly; SameSite=Strict$`),
    );
    const again = await console.send(visitor.base + console.url.search);
    expect(again).toMatchObject({ status: 401, body: '' });
    expect(again.headers['set-cookie']).toBeUndefined();
    // Whoever is in already may follow the link again.
    expect(await visitor.get(visitor.base + console.url.search)).toMatchObject({ status: 303 });
  });

  it.each(['', 'main.js', 'about', 'requests', 'nothing', '?token=', `?token=${'A'.repeat(43)}`])(
    'shows a stranger nothing of /%s',
    async (name) => {
      for (const headers of [
        {},
        { cookie: 'relaybox-console=' },
        { cookie: `relaybox-console=${randomUUID()}` },
      ]) {
        expect(await console.send(visitor.base + name, { headers })).toMatchObject({ status: 401, body: '' });
      }
    },
  );

  it('does nothing for a stranger, for another site, or for a form', async () => {
    const id = await t.row(failedColumns());
    const request = { command: 'requeue', ids: [id] };
    const { port, host } = console.url;
    const refused: [number, Sent['headers']][] = [
      [401, { cookie: undefined }],
      [401, { cookie: 'relaybox-console=wrong' }],
      [403, { host: `localhost:${port}` }],
      [403, { host: `rebound.example:${port}` }],
      [403, { host: '127.0.0.1' }],
      [403, { origin: undefined }],
      [403, { origin: 'null' }],
      [403, { origin: `https://${host}` }],
      [403, { origin: 'http://127.0.0.1:1' }],
      [403, { 'sec-fetch-site': 'same-site' }],
      [403, { 'sec-fetch-site': 'cross-site' }],
      [415, { 'content-type': undefined }],
      [415, { 'content-type': 'application/x-www-form-urlencoded' }],
      [415, { 'content-type': 'text/plain' }],
      [415, { 'content-type': 'application/jsonp' }],
    ];
    for (const [status, headers] of refused) {
      expect(await visitor.post(request, headers), JSON.stringify(headers)).toMatchObject({
        status,
        body: '',
      });
    }
    expect((await t.outboxRow(id))['state']).toBe(3);
    expect(await visitor.post(request, { 'content-type': 'Application/JSON; charset=utf-8' })).toMatchObject({
      status: 200,
    });
    expect((await t.outboxRow(id))['state']).toBe(0);
  });

  it('shows the page to no other host name, which may be a rebound one', async () => {
    const host = `rebound.example:${console.url.port}`;
    expect(await console.send(visitor.base, { headers: { cookie: visitor.cookie, host } })).toMatchObject({
      status: 403,
      body: '',
    });
  });

  it('refuses what is too large, whether it says so or not', async () => {
    const body = JSON.stringify({ command: 'status', pad: 'x'.repeat(70_000) });
    expect(await visitor.post(body)).toMatchObject({ status: 413, body: '' });
    const chunked = { 'transfer-encoding': 'chunked', 'content-length': undefined };
    expect(await visitor.post(body, chunked)).toMatchObject({ status: 413, body: '' });
    expect(
      await visitor.post({ command: 'requeue', dryRun: true, ids: Array.from({ length: 1000 }, randomUUID) }),
    ).toMatchObject({
      status: 200,
    });
  });
});

describe('what is served', () => {
  it('is the files of the page by name, each with its type', async () => {
    for (const [name, type] of Object.entries(pageFiles)) {
      const answer = await visitor.get(visitor.base + (name === 'index.html' ? '' : name));
      expect(answer, name).toMatchObject({ status: 200 });
      expect(answer.headers['content-type']).toBe(type);
      expect(answer.body.length).toBeGreaterThan(50);
    }
  });

  it.each([
    'nothing',
    'index.html',
    'tsconfig.json',
    'server.ts',
    '../server.ts',
    '../../package.json',
    '%2e%2e/server.ts',
    '..%2fserver.ts',
    '..\\server.ts',
    'main.js/',
    'main.js?x',
    '/etc/passwd',
    'constructor',
    '__proto__',
  ])('answers 404 to /%s', async (name) => {
    expect(await visitor.get(visitor.base + name)).toMatchObject({ status: 404, body: '' });
  });

  it('is nothing outside its secret path', async () => {
    for (const path of ['/', '/main.js', '/requests', `${visitor.base}../`, '/../../etc/passwd', '*']) {
      expect(await visitor.get(path), path).toMatchObject({ status: 404, body: '' });
    }
  });

  it('takes each path with its own method only', async () => {
    const { origin } = console.url;
    const wrong: [string, string][] = [
      ['GET', 'requests'],
      ['POST', ''],
      ['PUT', 'requests'],
      ['DELETE', 'main.js'],
    ];
    for (const [method, name] of wrong) {
      const answer = await console.send(visitor.base + name, {
        method,
        headers: { cookie: visitor.cookie, origin },
      });
      expect(answer, `${method} ${name}`).toMatchObject({ status: 405 });
    }
  });

  it('comes with headers that let nothing else run, frame, keep or follow it', async () => {
    const answers = [
      visitor.entered,
      await visitor.get(visitor.base),
      await visitor.get('/'),
      await console.send(visitor.base),
      await visitor.post({ command: 'status' }),
    ];
    for (const { headers } of answers) {
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
      });
      expect(headers['content-security-policy']).toMatch(
        /^default-src 'none'; script-src 'self'; style-src 'self';/,
      );
      expect(headers['content-security-policy']).not.toMatch(/unsafe|https?:|data:|\*/);
      expect(headers['access-control-allow-origin']).toBeUndefined();
    }
  });
});
