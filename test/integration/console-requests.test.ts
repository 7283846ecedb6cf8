import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { operate } from '../../shared/operations/operate.ts';
import type { FailedResponse, FateResponse, ShowResponse } from '../../shared/operations/responses.ts';
import { cli, fakeLambda } from '../support/cli.ts';
import { type ConsoleProcess, enter, startConsoleProcess, type Visitor } from '../support/console.ts';
import { inboxRow } from '../support/inbox.ts';
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

describe('what can be asked', () => {
  it('is where this is, without the password', async () => {
    const { host, pathname, password } = new URL(t.url);
    const about = await visitor.get(`${visitor.base}about`);
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
    expect(await visitor.ask({ command: 'status' })).toEqual(
      JSON.parse(JSON.stringify(await t.ask({ command: 'status' }))),
    );
    expect(await visitor.ask({ command: 'doctor' })).toMatchObject({ command: 'doctor', worst: 'problem' });
  });

  it('is which messages are Failed, page by page, without payloads', async () => {
    for (let n = 0; n < 3; n++) await t.row(failedColumns());
    const request = { command: 'failed', destination: 'orders', limit: 2 };
    const first = await visitor.ask<FailedResponse>(request);
    const second = await visitor.ask<FailedResponse>({ ...request, after: first.next });
    expect([first.messages.length, second.messages.length, second.next]).toEqual([2, 1, null]);
    expect(first.messages[0]?.lastError).toBe('the queue refused it');
    expect(JSON.stringify(first)).not.toContain('secret');
  });

  it('is one message, its payload only where it is asked for; and that arrives as data, whatever is in it', async () => {
    const payload = '<script>alert(1)</script>\u2028</pre>"&\u0001';
    const id = await t.row(failedColumns({ payload, last_error: '<img src=x onerror=alert(1)>' }));
    expect((await visitor.ask<ShowResponse>({ command: 'show', id })).messages[0]?.payload).toBeUndefined();
    const answer = await visitor.post({ command: 'show', id, payload: true });
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
      const answer = await visitor.post(request);
      expect(answer).toMatchObject({ status: 400 });
      expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'RELAYBOX_REQUEST_REFUSED' } });
    }
  });

  it('is refused as the command line refuses it, with a field that is misspelt', async () => {
    const id = await t.row(failedColumns());
    const answer = await visitor.post({ command: 'discard', ids: [id], reason: 'x', by: 'y', dryrun: true });
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
    const dry = await visitor.ask<FateResponse<'requeue'>>({ ...request, dryRun: true });
    expect(dry.changed.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect((await t.outboxRow(ids[0] ?? ''))['state']).toBe(3);
    await visitor.ask(request);
    for (const id of ids) expect(await t.outboxRow(id)).toMatchObject({ state: 0, retry_count: 0 });
    expect((await t.outboxRow(other))['state']).toBe(3);
  });

  it('discards with a reason, and not without', async () => {
    const id = await t.row(failedColumns());
    const request = { command: 'discard', ids: [id], by: 'Ada' };
    expect(await visitor.post(request)).toMatchObject({ status: 400 });
    expect(await visitor.ask({ ...request, reason: 'sent twice' })).toMatchObject({ changed: [{ id }] });
    const row = await t.outboxRow(id);
    expect(row['state']).toBe(4);
    expect(row['last_error']).toContain('Ada');
    expect(row['last_error']).toContain('sent twice');
  });

  it('pauses a lane, by whom, why and until when, and resumes it', async () => {
    await t.row();
    const lane = { destination: 'orders' };
    await visitor.ask({ command: 'pause', ...lane, by: 'Ada', reason: 'partner migrates', seconds: 3600 });
    const paused = await t.rows(
      'SELECT paused_by, paused_reason, paused_until_utc - paused_at_utc AS span FROM outbox_lanes',
    );
    expect(paused).toMatchObject([
      { paused_by: 'Ada', paused_reason: 'partner migrates', span: { hours: 1 } },
    ]);
    expect(await visitor.ask({ command: 'resume', ...lane })).toMatchObject({ changed: true });
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
    const inside = await enter(own);
    const lock = await t.pool.connect();
    await lock.query('BEGIN; LOCK TABLE outbox_lanes IN ACCESS EXCLUSIVE MODE');
    const answer = inside.post({ command: 'status' });
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
      const inside = await enter(own);
      await inside.ask({ command: 'requeue', ids: [id] });
      expect((await t.outboxRow(id))['state']).toBe(0);
      expect((await inside.get(`${inside.base}about`)).body).toContain('"where":"function orders-maintain"');
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
      const answer = await visitor.post({ command: 'status' });
      expect(answer).toMatchObject({ status: 500 });
      expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'RELAYBOX_SCHEMA' } });
      // It starts too: the doctor on its page says what is missing.
      const own = await startConsoleProcess(['--url', t.url]);
      expect(await own.stop('SIGTERM')).toBe(0);
    } finally {
      await t.pool.query('ALTER TABLE elsewhere RENAME TO outbox_lanes');
    }
    await visitor.ask({ command: 'status' });
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
