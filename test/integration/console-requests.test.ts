import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { operate } from '../../shared/operations/operate.ts';
import type { FailedResponse, FateResponse, ShowResponse } from '../../shared/operations/responses.ts';
import { cli, fakeLambda } from '../support/cli.ts';
import { enter, startConsoleProcess } from '../support/console.ts';
import { consoleOver } from '../support/console-over.ts';
import { engine } from '../support/engine/engine.ts';
import { failedColumns, operatingOn } from '../support/engine/operations.ts';
import { inboxRow } from '../support/inbox-rows.ts';
import { until } from '../support/until.ts';

const db = await engine.createDatabase();
const { ask, row, outboxRow } = operatingOn(db);
const open = consoleOver(db);

describe('what can be asked', () => {
  it('is where this is, without the password', async () => {
    const { protocol, host, pathname, password } = new URL(db.url);
    const about = await open.visitor.get(`${open.visitor.base}about`);
    expect(JSON.parse(about.body)).toEqual({
      where: `${protocol}//${host}${pathname}`,
      kind: 'database',
      by: expect.stringContaining('@'),
    });
    expect(password).not.toBe('');
    expect(about.body).not.toContain(`:${password}@`);
  });

  it('is how the lanes are, and what the doctor finds', async () => {
    await row(failedColumns({ partition_key: 'k', held: true }));
    await db.inbox.ingest([inboxRow()]);
    // The two are asked for one after the other: an age may be a second more.
    const ageless = (status: unknown) =>
      JSON.parse(JSON.stringify(status), (key, value) => (key.endsWith('Seconds') ? typeof value : value));
    expect(ageless(await open.visitor.ask({ command: 'status' }))).toEqual(
      ageless(await ask({ command: 'status' })),
    );
    expect(await open.visitor.ask({ command: 'doctor' })).toMatchObject({
      command: 'doctor',
      worst: 'problem',
    });
  });

  it('is which messages are Failed, page by page, without payloads', async () => {
    for (let n = 0; n < 3; n++) await row(failedColumns());
    const request = { command: 'failed', destination: 'orders', limit: 2 };
    const first = await open.visitor.ask<FailedResponse>(request);
    const second = await open.visitor.ask<FailedResponse>({ ...request, after: first.next });
    expect([first.messages.length, second.messages.length, second.next]).toEqual([2, 1, null]);
    expect(first.messages[0]?.lastError).toBe('the queue refused it');
    expect(JSON.stringify(first)).not.toContain('secret');
  });

  it('is one message, its payload only where it is asked for; and that arrives as data, whatever is in it', async () => {
    const payload = '<script>alert(1)</script>\u2028</pre>"&\u0001';
    const id = await row(failedColumns({ payload, last_error: '<img src=x onerror=alert(1)>' }));
    expect(
      (await open.visitor.ask<ShowResponse>({ command: 'show', id })).messages[0]?.payload,
    ).toBeUndefined();
    const answer = await open.visitor.post({ command: 'show', id, payload: true });
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    const [message] = (JSON.parse(answer.body) as ShowResponse).messages;
    expect(message).toMatchObject({ payload, lastError: '<img src=x onerror=alert(1)>' });
    expect(open.console.output()).not.toContain('script');
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
      const answer = await open.visitor.post(request);
      expect(answer).toMatchObject({ status: 400 });
      expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'RELAYBOX_REQUEST_REFUSED' } });
    }
  });

  it('is refused as the command line refuses it, with a field that is misspelt', async () => {
    const id = await row(failedColumns());
    const answer = await open.visitor.post({
      command: 'discard',
      ids: [id],
      reason: 'x',
      by: 'y',
      dryrun: true,
    });
    expect(answer).toMatchObject({ status: 400 });
    expect(answer.body).toContain('unknown field dryrun');
    expect((await outboxRow(id))['state']).toBe(3);
  });
});

describe('what can be decided', () => {
  it('requeues by lane, after a dry run that does nothing', async () => {
    const ids = [await row(failedColumns()), await row(failedColumns())];
    const other = await row(failedColumns({ destination: 'events' }));
    const request = { command: 'requeue', all: true, destination: 'orders' };
    const dry = await open.visitor.ask<FateResponse<'requeue'>>({ ...request, dryRun: true });
    expect(dry.changed.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect((await outboxRow(ids[0] ?? ''))['state']).toBe(3);
    await open.visitor.ask(request);
    for (const id of ids) expect(await outboxRow(id)).toMatchObject({ state: 0, retry_count: 0 });
    expect((await outboxRow(other))['state']).toBe(3);
  });

  it('discards with a reason, and not without', async () => {
    const id = await row(failedColumns());
    const request = { command: 'discard', ids: [id], by: 'Ada' };
    expect(await open.visitor.post(request)).toMatchObject({ status: 400 });
    expect(await open.visitor.ask({ ...request, reason: 'sent twice' })).toMatchObject({ changed: [{ id }] });
    const { state, last_error: error } = await outboxRow(id);
    expect(state).toBe(4);
    expect(error).toContain('Ada');
    expect(error).toContain('sent twice');
  });

  it('pauses a lane, by whom, why and until when, and resumes it', async () => {
    await row();
    const lane = { destination: 'orders' };
    await open.visitor.ask({
      command: 'pause',
      ...lane,
      by: 'Ada',
      reason: 'partner migrates',
      seconds: 3600,
    });
    const columns = ['paused_by', 'paused_reason'] as const;
    expect(await db.rows('lanes', {}, { columns })).toEqual([
      { paused_by: 'Ada', paused_reason: 'partner migrates' },
    ]);
    const [left] = await db.secondsLeft('lanes', 'paused_until_utc');
    expect(left).toBeGreaterThan(3_500);
    expect(left).toBeLessThanOrEqual(3_600);
    expect(await open.visitor.ask({ command: 'resume', ...lane })).toMatchObject({ changed: true });
    expect(await db.rows('lanes')).toMatchObject([{ paused_at_utc: null }]);
  });
});

describe('the command', () => {
  it('prints one link, and ends on Ctrl-C with its connections closed', async () => {
    const own = await startConsoleProcess(['--url', db.url, '--port', '0']);
    expect(own.output()).toMatch(/^\{"url":"http:\/\/127\.0\.0\.1:\d+\/[\w-]{22}\/\?token=[\w-]{43}"\}\n$/);
    const socket = connect(Number(own.url.port), '127.0.0.1');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await new Promise((resolve) => socket.once('connect', resolve));
    expect(await own.stop()).toBe(0);
    await closed;
    await expect(own.send('/')).rejects.toThrow('ECONNREFUSED');
  });

  it('ends only when what is under way has been answered', async () => {
    const own = await startConsoleProcess(['--url', db.url]);
    const inside = await enter(own);
    const id = await row(failedColumns());
    const lock = await db.hold('outbox', { id });
    const answer = inside.post({ command: 'requeue', ids: [id] });
    await until(
      () => db.waiting(),
      (count) => count > 0,
    );
    const code = own.stop();
    await until(
      () => own.send('/').catch(() => null),
      (sent) => sent === null,
    );
    await lock.release();
    expect(await answer).toMatchObject({ status: 200 });
    expect(await code).toBe(0);
  });

  it('asks the deployed function where it is named, by the same requests', async () => {
    const lambda = await fakeLambda(async (_name, payload) => await operate(db.operations, payload));
    const own = await startConsoleProcess(['--function', 'orders-maintain'], lambda.env);
    try {
      const id = await row(failedColumns());
      const inside = await enter(own);
      await inside.ask({ command: 'requeue', ids: [id] });
      expect((await outboxRow(id))['state']).toBe(0);
      expect((await inside.get(`${inside.base}about`)).body).toContain('"where":"function orders-maintain"');
    } finally {
      await own.stop();
      await lambda.stop();
    }
  });

  it('ends as other commands do: 2 for wrong usage, 3 where the database is out of reach', async () => {
    const { port } = open.console.url;
    expect(await cli(['console'])).toMatchObject({ code: 2 });
    expect(await cli(['console', '--url', db.url, '--port', '70000'])).toMatchObject({ code: 2 });
    const taken = await cli(['console', '--url', db.url, '--port', port, '--json']);
    expect(taken).toMatchObject({ code: 2 });
    expect(taken.stdout).toContain('RELAYBOX_USAGE');
    expect(await cli(['console', '--url', 'postgres://u:p@127.0.0.1:1/none'])).toMatchObject({
      code: 3,
      stdout: '',
    });
  });

  it('shows an error of the database as the command line would, and goes on', async () => {
    await db.sql({
      postgres: 'ALTER TABLE outbox_lanes RENAME TO elsewhere',
      sqlserver: "EXEC sp_rename 'dbo.OutboxLanes', 'Elsewhere'",
    });
    try {
      const answer = await open.visitor.post({ command: 'status' });
      expect(answer).toMatchObject({ status: 500 });
      expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'RELAYBOX_SCHEMA' } });
      // It starts too: the doctor on its page says what is missing.
      const own = await startConsoleProcess(['--url', db.url]);
      expect(await own.stop('SIGTERM')).toBe(0);
    } finally {
      await db.sql({
        postgres: 'ALTER TABLE elsewhere RENAME TO outbox_lanes',
        sqlserver: "EXEC sp_rename 'dbo.Elsewhere', 'OutboxLanes'",
      });
    }
    await open.visitor.ask({ command: 'status' });
  });
});
