import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { pageFiles } from '../../cli/console/page.ts';
import { operate } from '../../shared/operations/operate.ts';
import type { FailedResponse, FateResponse, ShowResponse } from '../../shared/operations/responses.ts';
import { cli, fakeLambda } from '../support/cli.ts';
import { type Answer, type ConsoleProcess, type Sent, startConsoleProcess } from '../support/console.ts';
import { inboxRow } from '../support/inbox.ts';
import { createOperations, failedColumns, type OperationsFixture } from '../support/operations.ts';

let t: OperationsFixture;
let console: ConsoleProcess;
let base: string;
let entered: Answer;
let cookie: string;

beforeAll(async () => {
  t = await createOperations();
  console = await startConsoleProcess(['--url', t.url]);
  base = console.url.pathname;
  entered = await console.send(base + console.url.search);
  cookie = (entered.headers['set-cookie']?.[0] ?? '').split(';')[0] ?? '';
});
afterAll(async () => {
  await console.stop();
  await t.drop();
});
beforeEach(async () => {
  await t.pool.query('TRUNCATE outbox_messages, outbox_leases, outbox_lanes, inbox_messages, inbox_keys');
});

/** A request as the page sends it, but for what is given. */
function post(request: unknown, headers: Sent['headers'] = {}): Promise<Answer> {
  const own = { origin: console.url.origin, 'content-type': 'application/json', cookie };
  const body = typeof request === 'string' ? request : JSON.stringify(request);
  return console.send(`${base}requests`, { method: 'POST', headers: { ...own, ...headers }, body });
}

async function ask<Response>(request: unknown): Promise<Response> {
  const answer = await post(request);
  expect(answer, answer.body).toMatchObject({ status: 200 });
  return JSON.parse(answer.body) as Response;
}

const get = (path: string): Promise<Answer> => console.send(path, { headers: { cookie } });

describe('who comes in', () => {
  it('opens once for the printed token, and takes it out of the address', async () => {
    expect(entered).toMatchObject({ status: 303, body: '' });
    expect(entered.headers.location).toBe(base);
    expect(entered.headers['set-cookie']?.[0]).toMatch(
      new RegExp(`^relaybox-console=[\\w-]{43}; Path=${base}; HttpOnly; SameSite=Strict$`),
    );
    const again = await console.send(base + console.url.search);
    expect(again).toMatchObject({ status: 401, body: '' });
    expect(again.headers['set-cookie']).toBeUndefined();
    // Whoever is in already may follow the link again.
    expect(await get(base + console.url.search)).toMatchObject({ status: 303 });
  });

  it.each(['', 'main.js', 'about', 'requests', 'nothing', '?token=', `?token=${'A'.repeat(43)}`])(
    'shows a stranger nothing of /%s',
    async (name) => {
      for (const headers of [
        {},
        { cookie: 'relaybox-console=' },
        { cookie: `relaybox-console=${randomUUID()}` },
      ]) {
        expect(await console.send(base + name, { headers })).toMatchObject({ status: 401, body: '' });
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
      expect(await post(request, headers), JSON.stringify(headers)).toMatchObject({ status, body: '' });
    }
    expect((await t.outboxRow(id))['state']).toBe(3);
    expect(await post(request, { 'content-type': 'Application/JSON; charset=utf-8' })).toMatchObject({
      status: 200,
    });
    expect((await t.outboxRow(id))['state']).toBe(0);
  });

  it('shows the page to no other host name, which may be a rebound one', async () => {
    const host = `rebound.example:${console.url.port}`;
    expect(await console.send(base, { headers: { cookie, host } })).toMatchObject({ status: 403, body: '' });
  });

  it('refuses what is too large, whether it says so or not', async () => {
    const body = JSON.stringify({ command: 'status', pad: 'x'.repeat(70_000) });
    expect(await post(body)).toMatchObject({ status: 413, body: '' });
    const chunked = { 'transfer-encoding': 'chunked', 'content-length': undefined };
    expect(await post(body, chunked)).toMatchObject({ status: 413, body: '' });
    expect(
      await post({ command: 'requeue', dryRun: true, ids: Array.from({ length: 1000 }, randomUUID) }),
    ).toMatchObject({
      status: 200,
    });
  });
});

describe('what is served', () => {
  it('is the files of the page by name, each with its type', async () => {
    for (const [name, type] of Object.entries(pageFiles)) {
      const answer = await get(base + (name === 'index.html' ? '' : name));
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
    expect(await get(base + name)).toMatchObject({ status: 404, body: '' });
  });

  it('is nothing outside its secret path', async () => {
    for (const path of ['/', '/main.js', '/requests', `${base}../`, '/../../etc/passwd', '*']) {
      expect(await get(path), path).toMatchObject({ status: 404, body: '' });
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
      const answer = await console.send(base + name, { method, headers: { cookie, origin } });
      expect(answer, `${method} ${name}`).toMatchObject({ status: 405 });
    }
  });

  it('comes with headers that let nothing else run, frame, keep or follow it', async () => {
    const answers = [
      entered,
      await get(base),
      await get('/'),
      await console.send(base),
      await post({ command: 'status' }),
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

describe('what can be asked', () => {
  it('is where this is, without the password', async () => {
    const { host, pathname, password } = new URL(t.url);
    const about = await get(`${base}about`);
    expect(JSON.parse(about.body)).toEqual({
      where: `postgres://${host}${pathname}`,
      kind: 'database',
      by: expect.stringContaining('@'),
    });
    expect(password).not.toBe('');
    expect(about.body).not.toContain(`:${password}@`);
  });

  it('is how the lanes are, and what the doctor finds', async () => {
    await t.row(failedColumns({ partition_key: 'k', held: true }));
    await t.store.ingest([inboxRow()]);
    expect(await ask({ command: 'status' })).toEqual(
      JSON.parse(JSON.stringify(await t.ask({ command: 'status' }))),
    );
    expect(await ask({ command: 'doctor' })).toMatchObject({ command: 'doctor', worst: 'problem' });
  });

  it('is which messages are Failed, page by page, without payloads', async () => {
    for (let n = 0; n < 3; n++) await t.row(failedColumns());
    const request = { command: 'failed', destination: 'orders', limit: 2 };
    const first = await ask<FailedResponse>(request);
    const second = await ask<FailedResponse>({ ...request, after: first.next });
    expect([first.messages.length, second.messages.length, second.next]).toEqual([2, 1, null]);
    expect(first.messages[0]?.lastError).toBe('the queue refused it');
    expect(JSON.stringify(first)).not.toContain('secret');
  });

  it('is one message, its payload only where it is asked for; and that arrives as data, whatever is in it', async () => {
    const payload = '<script>alert(1)</script>\u2028</pre>"&\u0001';
    const id = await t.row(failedColumns({ payload, last_error: '<img src=x onerror=alert(1)>' }));
    expect((await ask<ShowResponse>({ command: 'show', id })).messages[0]?.payload).toBeUndefined();
    const answer = await post({ command: 'show', id, payload: true });
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    const [message] = (JSON.parse(answer.body) as ShowResponse).messages;
    expect(message).toMatchObject({ payload, lastError: '<img src=x onerror=alert(1)>' });
    expect(console.output()).not.toContain('script');
  });

  it('is nothing that removes rows, and no cycle of maintenance', async () => {
    for (const request of [
      { command: 'purge', from: 'outbox', olderThanDays: 0 },
      {},
      [],
      null,
      'not json',
      { command: 'toString' },
    ]) {
      const answer = await post(request);
      expect(answer).toMatchObject({ status: 400 });
      expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'RELAYBOX_REQUEST_REFUSED' } });
    }
  });

  it('is refused as the command line refuses it, with a field that is misspelt', async () => {
    const id = await t.row(failedColumns());
    const answer = await post({ command: 'discard', ids: [id], reason: 'x', by: 'y', dryrun: true });
    expect(answer).toMatchObject({ status: 400 });
    expect(answer.body).toContain('unknown field dryrun');
    expect((await t.outboxRow(id))['state']).toBe(3);
  });
});

describe('what can be decided', () => {
  it('requeues by lane, after a dry run that does nothing', async () => {
    const ids = [await t.row(failedColumns()), await t.row(failedColumns())];
    const other = await t.row(failedColumns({ destination: 'events' }));
    const request = { command: 'requeue', all: true, destination: 'orders' };
    const dry = await ask<FateResponse<'requeue'>>({ ...request, dryRun: true });
    expect(dry.changed.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect((await t.outboxRow(ids[0] ?? ''))['state']).toBe(3);
    await ask(request);
    for (const id of ids) expect(await t.outboxRow(id)).toMatchObject({ state: 0, retry_count: 0 });
    expect((await t.outboxRow(other))['state']).toBe(3);
  });

  it('discards with a reason, and not without', async () => {
    const id = await t.row(failedColumns());
    const request = { command: 'discard', ids: [id], by: 'Ada' };
    expect(await post(request)).toMatchObject({ status: 400 });
    expect(await ask({ ...request, reason: 'sent twice' })).toMatchObject({ changed: [{ id }] });
    const row = await t.outboxRow(id);
    expect(row['state']).toBe(4);
    expect(row['last_error']).toContain('Ada');
    expect(row['last_error']).toContain('sent twice');
  });

  it('pauses a lane, by whom, why and until when, and resumes it', async () => {
    await t.row();
    const lane = { destination: 'orders' };
    await ask({ command: 'pause', ...lane, by: 'Ada', reason: 'partner migrates', seconds: 3600 });
    const paused = await t.rows(
      'SELECT paused_by, paused_reason, paused_until_utc - paused_at_utc AS span FROM outbox_lanes',
    );
    expect(paused).toMatchObject([
      { paused_by: 'Ada', paused_reason: 'partner migrates', span: { hours: 1 } },
    ]);
    expect(await ask({ command: 'resume', ...lane })).toMatchObject({ changed: true });
    expect(await t.rows('SELECT paused_at_utc FROM outbox_lanes')).toMatchObject([{ paused_at_utc: null }]);
  });
});

describe('the command', () => {
  it('prints one link, and ends on Ctrl-C with its connections closed', async () => {
    const own = await startConsoleProcess(['--url', t.url, '--port', '0']);
    expect(own.output()).toMatch(/^\{"url":"http:\/\/127\.0\.0\.1:\d+\/[\w-]{22}\/\?token=[\w-]{43}"\}\n$/);
    const open = connect(Number(own.url.port), '127.0.0.1');
    const closed = new Promise((resolve) => open.once('close', resolve));
    await new Promise((resolve) => open.once('connect', resolve));
    expect(await own.stop()).toBe(0);
    await closed;
    await expect(own.send('/')).rejects.toThrow('ECONNREFUSED');
  });

  it('ends only when what is under way has been answered', async () => {
    const own = await startConsoleProcess(['--url', t.url]);
    const { pathname, search, origin } = own.url;
    const first = await own.send(pathname + search);
    const headers = {
      cookie: first.headers['set-cookie']?.[0]?.split(';')[0],
      origin,
      'content-type': 'application/json',
    };
    const lock = await t.pool.connect();
    await lock.query('BEGIN; LOCK TABLE outbox_lanes IN ACCESS EXCLUSIVE MODE');
    const body = JSON.stringify({ command: 'status' });
    const answer = own.send(`${pathname}requests`, { method: 'POST', headers, body });
    await waitUntil(async () => {
      const { rows } = await t.pool.query(
        "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'outbox_lanes'::regclass",
      );
      return rows.length > 0;
    });
    const code = own.stop();
    await waitUntil(async () => (await own.send('/').catch(() => null)) === null);
    await lock.query('COMMIT');
    lock.release();
    expect(await answer).toMatchObject({ status: 200 });
    expect(await code).toBe(0);
  });

  it('asks the deployed function where it is named, by the same requests', async () => {
    const lambda = await fakeLambda(async (_name, payload) => await operate(t.operations, payload));
    const own = await startConsoleProcess(['--function', 'orders-maintain'], lambda.env);
    try {
      const id = await t.row(failedColumns());
      const { pathname, search, origin } = own.url;
      const first = await own.send(pathname + search);
      const headers = {
        cookie: first.headers['set-cookie']?.[0]?.split(';')[0],
        origin,
        'content-type': 'application/json',
      };
      const body = JSON.stringify({ command: 'requeue', ids: [id] });
      expect(await own.send(`${pathname}requests`, { method: 'POST', headers, body })).toMatchObject({
        status: 200,
      });
      expect((await t.outboxRow(id))['state']).toBe(0);
      expect((await own.send(`${pathname}about`, { headers })).body).toContain(
        '"where":"function orders-maintain"',
      );
    } finally {
      await own.stop();
      await lambda.stop();
    }
  });

  it('ends as other commands do: 2 for wrong usage, 3 where the database is out of reach', async () => {
    const { port } = console.url;
    expect(await cli(['console'])).toMatchObject({ code: 2 });
    expect(await cli(['console', '--url', t.url, '--port', '70000'])).toMatchObject({ code: 2 });
    const taken = await cli(['console', '--url', t.url, '--port', port, '--json']);
    expect(taken).toMatchObject({ code: 2 });
    expect(taken.stdout).toContain('RELAYBOX_USAGE');
    expect(await cli(['console', '--url', 'postgres://u:p@127.0.0.1:1/none'])).toMatchObject({
      code: 3,
      stdout: '',
    });
  });

  it('shows an error of the database as the command line would, and goes on', async () => {
    await t.pool.query('ALTER TABLE outbox_lanes RENAME TO elsewhere');
    try {
      const answer = await post({ command: 'status' });
      expect(answer).toMatchObject({ status: 500 });
      expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'RELAYBOX_SCHEMA' } });
      // It starts too: the doctor on its page says what is missing.
      const own = await startConsoleProcess(['--url', t.url]);
      expect(await own.stop('SIGTERM')).toBe(0);
    } finally {
      await t.pool.query('ALTER TABLE elsewhere RENAME TO outbox_lanes');
    }
    await ask({ command: 'status' });
  });
});

/** Looks again and again, for a few seconds. */
async function waitUntil(holds: () => Promise<boolean>): Promise<void> {
  for (let n = 0; n < 200; n++) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error('it never came to that');
}
