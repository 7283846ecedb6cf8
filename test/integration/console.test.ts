import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { pageFiles } from '../../cli/console/page.ts';
import type { Sent } from '../support/console.ts';
import { consoleOver } from '../support/console-over.ts';
import { engine } from '../support/engine/engine.ts';
import { failedColumns, operatingOn } from '../support/engine/operations.ts';

const db = await engine.createDatabase();
const { row, outboxRow } = operatingOn(db);
const open = consoleOver(db);

describe('who comes in', () => {
  it('opens once for the printed token, and takes it out of the address', async () => {
    expect(open.visitor.entered).toMatchObject({ status: 303, body: '' });
    expect(open.visitor.entered.headers.location).toBe(open.visitor.base);
    expect(open.visitor.entered.headers['set-cookie']?.[0]).toMatch(
      new RegExp(`^relaybox-console=[\\w-]{43}; Path=${open.visitor.base}; HttpOnly; SameSite=Strict$`),
    );
    const again = await open.console.send(open.visitor.base + open.console.url.search);
    expect(again).toMatchObject({ status: 401 });
    expect(again.headers['set-cookie']).toBeUndefined();
    // Whoever is in already may follow the link again.
    expect(await open.visitor.get(open.visitor.base + open.console.url.search)).toMatchObject({
      status: 303,
    });
  });

  it('says to whoever brings a link that was used, or of a console that has ended, how to go on', async () => {
    const { base } = open.visitor;
    const used = await open.console.send(base + open.console.url.search);
    expect(used.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(used.body).toMatch(/used already, or its console has ended.*\n.*Start relaybox console anew/);
    // The same whether the path was right or not: it tells nobody anything of this console.
    const wrong = [`?token=${'A'.repeat(43)}`, '?token=', ''].map((query) => base + query);
    const earlier = `/${'B'.repeat(22)}/?token=${'A'.repeat(43)}`;
    for (const path of [...wrong, earlier]) {
      const { status, body } = await open.console.send(path);
      expect({ status, body }, path).toEqual({ status: 401, body: used.body });
    }
    for (const secret of [
      ...base.split('/'),
      open.console.url.search.slice(7),
      open.console.url.port,
      db.url,
    ]) {
      if (secret !== '') expect(used.body).not.toContain(secret);
    }
  });

  it.each(['main.js', 'about', 'requests', 'nothing', '?token=x&y', '?tokens='])(
    'shows a stranger nothing of /%s',
    async (name) => {
      for (const headers of [
        {},
        { cookie: 'relaybox-console=' },
        { cookie: `relaybox-console=${randomUUID()}` },
      ]) {
        expect(await open.console.send(open.visitor.base + name, { headers })).toMatchObject({
          status: 401,
          body: '',
        });
      }
    },
  );

  it('does nothing for a stranger, for another site, or for a form', async () => {
    const id = await row(failedColumns());
    const request = { command: 'requeue', ids: [id] };
    const { port, host } = open.console.url;
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
      expect(await open.visitor.post(request, headers), JSON.stringify(headers)).toMatchObject({
        status,
        body: '',
      });
    }
    expect((await outboxRow(id))['state']).toBe(3);
    expect(
      await open.visitor.post(request, { 'content-type': 'Application/JSON; charset=utf-8' }),
    ).toMatchObject({
      status: 200,
    });
    expect((await outboxRow(id))['state']).toBe(0);
  });

  it('shows the page to no other host name, which may be a rebound one', async () => {
    const host = `rebound.example:${open.console.url.port}`;
    expect(
      await open.console.send(open.visitor.base, { headers: { cookie: open.visitor.cookie, host } }),
    ).toMatchObject({
      status: 403,
      body: '',
    });
  });

  it('refuses what is too large, whether it says so or not', async () => {
    const body = JSON.stringify({ command: 'status', pad: 'x'.repeat(70_000) });
    expect(await open.visitor.post(body)).toMatchObject({ status: 413, body: '' });
    const chunked = { 'transfer-encoding': 'chunked', 'content-length': undefined };
    expect(await open.visitor.post(body, chunked)).toMatchObject({ status: 413, body: '' });
    expect(
      await open.visitor.post({
        command: 'requeue',
        dryRun: true,
        ids: Array.from({ length: 1000 }, randomUUID),
      }),
    ).toMatchObject({
      status: 200,
    });
  });
});

describe('what is served', () => {
  it('is the files of the page by name, each with its type', async () => {
    for (const [name, type] of Object.entries(pageFiles)) {
      const answer = await open.visitor.get(open.visitor.base + (name === 'index.html' ? '' : name));
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
    expect(await open.visitor.get(open.visitor.base + name)).toMatchObject({ status: 404, body: '' });
  });

  it('is nothing outside its secret path', async () => {
    for (const path of ['/', '/main.js', '/requests', `${open.visitor.base}../`, '/../../etc/passwd', '*']) {
      expect(await open.visitor.get(path), path).toMatchObject({ status: 404, body: '' });
    }
  });

  it('takes each path with its own method only', async () => {
    const { origin } = open.console.url;
    const wrong: [string, string][] = [
      ['GET', 'requests'],
      ['POST', ''],
      ['PUT', 'requests'],
      ['DELETE', 'main.js'],
    ];
    for (const [method, name] of wrong) {
      const answer = await open.console.send(open.visitor.base + name, {
        method,
        headers: { cookie: open.visitor.cookie, origin },
      });
      expect(answer, `${method} ${name}`).toMatchObject({ status: 405 });
    }
  });

  it('comes with headers that let nothing else run, frame, keep or follow it', async () => {
    const answers = [
      open.visitor.entered,
      await open.visitor.get(open.visitor.base),
      await open.visitor.get('/'),
      await open.console.send(open.visitor.base),
      await open.console.send(`${open.visitor.base}main.js`),
      await open.visitor.post({ command: 'status' }),
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
