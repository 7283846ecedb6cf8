import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { operate } from '../../shared/operations/operate.ts';
import type { FateResponse, StatusResponse } from '../../shared/operations/responses.ts';
import { recordCycle } from '../../shared/store/postgres/operations.ts';
import { type CliRun, cli, type FakeLambda, fakeLambda } from '../support/cli.ts';
import { createDatabase } from '../support/database.ts';
import { inboxRow } from '../support/inbox.ts';
import { createOperations, failedColumns, type OperationsFixture } from '../support/operations.ts';

let t: OperationsFixture;
let lambda: FakeLambda;
let invoked: unknown[] = [];
beforeAll(async () => {
  t = await createOperations();
  lambda = await fakeLambda(async (name, payload) => {
    invoked.push(payload);
    if (name === 'other') return { removed: {} };
    return await operate(t.operations, payload);
  });
});
afterAll(async () => {
  await lambda.stop();
  await t.drop();
});
beforeEach(async () => {
  invoked = [];
  await t.pool.query(
    'TRUNCATE outbox_messages, outbox_leases, outbox_lanes, inbox_messages, inbox_keys, inbox_lanes, relaybox_workers',
  );
});

const run = (...args: string[]): Promise<CliRun> => cli([...args, '--url', t.url]);

describe('looking', () => {
  it('shows the lanes in an aligned table, and the whole of it to a script', async () => {
    await t.row(failedColumns({ partition_key: 'k', held: true }));
    await t.row({ destination: 'a-longer-name' });
    await t.store.ingest([inboxRow()]);
    await t.ask({ command: 'pause', destination: 'orders', by: 'Ada', reason: 'migrating' });
    const { code, stdout } = await run('status');
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines[0]).toMatch(/^LANE +STATE +DUE +OLDEST +WAITING +HELD +LEASED +FAILED +BLOCKED KEYS +NOTE$/);
    const at = lines[0]?.indexOf('STATE') ?? 0;
    expect(lines.slice(1).map((line) => line.slice(at, at + 6).trim())).toEqual(['ready', 'paused', 'ready']);
    expect(stdout).toContain('by Ada: migrating');
    const json = (await run('status', '--json')).json() as StatusResponse;
    expect(json.lanes).toHaveLength(3);
  });

  it('lists Failed messages of both boxes without payloads, and gives the next page', async () => {
    for (let n = 0; n < 3; n++) await t.row(failedColumns());
    await t.store.ingest([inboxRow({ failedReason: 'bad \u001B[2Jbody', payload: 'secret' })]);
    const { stdout } = await run('failed', '--limit', '2');
    expect(stdout).toContain('the queue refused it');
    expect(stdout).toContain('bad body');
    expect(stdout).not.toContain('secret');
    const after = /--outbox --after (\S+)/.exec(stdout)?.[1] ?? '';
    const next = await run('failed', '--outbox', '--after', after, '--json');
    expect((next.json() as { outbox: { messages: unknown[] } }).outbox.messages).toHaveLength(1);
  });

  it('shows a message, its payload only when asked, and ends with 1 where there is none', async () => {
    const id = await t.row();
    const shown = await run('show', id);
    expect(shown).toMatchObject({ code: 0 });
    expect(shown.stdout).toMatch(/state +Pending: due/);
    expect(shown.stdout).not.toContain('secret');
    expect((await run('show', id, '--payload')).stdout).toContain('{"secret":"payload"}');
    expect((await run('show', randomUUID())).code).toBe(1);
  });
});

describe('deciding', () => {
  it('refuses to do harm without a terminal to ask on, and does it with --yes', async () => {
    const id = await t.row(failedColumns());
    for (const args of [
      ['requeue', id],
      ['discard', id, '--reason', 'x'],
      ['requeue', '--all', '--destination', 'orders'],
      ['purge', 'outbox'],
    ]) {
      const { code, stderr } = await run(...args);
      expect(code, stderr).toBe(2);
      expect(stderr).toContain('add --yes');
    }
    expect((await t.outboxRow(id))['state']).toBe(3);
    expect(await run('requeue', id, '--yes')).toMatchObject({ code: 0, stdout: '1 requeued\n' });
    expect((await t.outboxRow(id))['state']).toBe(0);
  });

  it('says what it would do, and does nothing, with --dry-run', async () => {
    const id = await t.row(failedColumns());
    const dry = await run('discard', '--all', '--destination', 'orders', '--reason', 'x', '--dry-run');
    expect(dry).toMatchObject({ code: 0, stdout: '1 would be discarded\n' });
    expect((await t.outboxRow(id))['state']).toBe(3);
  });

  it('takes a whole lane in several requests, and tells what was refused with exit code 1', async () => {
    await t.pool.query(
      `INSERT INTO outbox_messages (id, destination, message_type, payload, created_at_utc, state, processed_at_utc)
       SELECT gen_random_uuid(), 'orders', 'x', '{}', now(), 3, now() FROM generate_series(1, 450)`,
    );
    const all = await run('requeue', '--all', '--destination', 'orders', '--yes', '--json');
    expect(all.code).toBe(0);
    expect((all.json() as FateResponse<'requeue'>).changed).toHaveLength(450);
    expect(all.stderr).toContain('200 so far');
    const { rows } = await t.pool.query('SELECT DISTINCT state FROM outbox_messages');
    expect(rows).toEqual([{ state: 0 }]);
    const refused = await run('requeue', randomUUID(), '--yes');
    expect(refused.code).toBe(1);
    expect(refused.stdout).toContain('there is no such message');
  });

  it('keeps who discarded and why', async () => {
    const id = await t.row(failedColumns());
    await run('discard', id, '--reason', 'sent twice', '--by', 'Ada', '--yes');
    expect((await t.outboxRow(id))['last_error']).toBe('Discarded by Ada: sent twice');
  });

  it('pauses for a time, says until when, and resumes', async () => {
    const paused = await run('pause', '--destination', 'orders', '--reason', 'x', '--for', '2h');
    expect(paused.stdout).toMatch(/^outbox orders is paused until \d{4}-/);
    expect((await run('resume', '--destination', 'orders')).stdout).toBe('outbox orders goes on\n');
    expect((await run('resume', '--type', 'order.placed')).stdout).toContain('was not paused');
  });

  it('pauses a lane in which nothing is, and says so', async () => {
    const pause = ['pause', '--reason', 'x', '--destination'] as const;
    const unknown = await run(...pause, 'ordres');
    expect(unknown.code).toBe(0);
    expect(unknown.stdout).toContain('Nothing is in this lane now');
    expect((await run(...pause, 'ordres', '--json')).json()).toMatchObject({ empty: true });
    await t.row({ destination: 'filled' });
    expect((await run(...pause, 'filled')).stdout).not.toContain('Nothing is in this lane');
  });

  it('refuses what is no id before it asks for a confirmation', async () => {
    const wrong = await run('requeue', 'bad', '--json');
    expect(wrong.code).toBe(2);
    expect(wrong.json()).toMatchObject({ error: { message: expect.stringContaining('bad is no UUID') } });
  });

  it('asks with the figures: how many, of when', async () => {
    const id = await t.row(failedColumns());
    expect((await run('discard', id, '--reason', 'x')).stderr).toContain('discard 1 message?');
    const purge = await run('purge', 'outbox', '--older-than', '3');
    expect(purge.stderr).toMatch(/remove \d+ rows? of the outbox that ended at least 3 days ago\?/);
    expect((await run('purge', 'inbox')).stderr).toContain('at least 30 days ago?');
  });

  it('says how to look for a sender’s id where there is no such row', async () => {
    const id = randomUUID();
    const shown = await run('show', id);
    expect(shown.code).toBe(1);
    expect(shown.stdout).toContain(`relaybox show --source <source> --external-id ${id}`);
  });

  it('purges in batches until nothing is left', async () => {
    await t.pool.query(
      `INSERT INTO outbox_messages (id, destination, message_type, payload, created_at_utc, state, processed_at_utc)
       SELECT gen_random_uuid(), 'orders', 'x', '{}', now(), 2, now() - interval '2 days' FROM generate_series(1, 2500)`,
    );
    await t.row();
    expect((await run('purge', 'outbox', '--older-than', '1', '--dry-run')).stdout).toContain('2500 rows');
    const { stdout } = await run('purge', 'outbox', '--older-than', '1', '--yes');
    expect(stdout).toBe('2500 rows of the outbox removed\n');
    expect(await t.rows('SELECT state FROM outbox_messages')).toEqual([{ state: 0 }]);
  });
});

describe('judging', () => {
  it('doctor and health end with 1 on a finding and with 0 without', async () => {
    expect((await run('health')).code).toBe(1);
    expect((await run('doctor')).stdout).toContain('no relay has ever reported');
    await recordCycle(t.pool, t.tables, 'outbox-relay');
    expect(await run('health')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ready\n/) });
    const doctor = await run('doctor', '--json');
    expect(doctor.code, doctor.stdout).toBe(0);
    await t.row(failedColumns());
    const found = await run('doctor');
    expect(found.code).toBe(1);
    expect(found.stdout).toContain('relaybox failed --destination orders, then requeue or discard');
  });
});

describe('through the deployed function', () => {
  it('asks and decides as with a URL', async () => {
    const id = await t.row(failedColumns());
    const status = await cli(['status', '--function', 'maintain', '--json'], lambda.env);
    expect(status.code, status.stderr).toBe(0);
    expect((status.json() as StatusResponse).lanes).toHaveLength(1);
    const requeued = await cli(['requeue', id, '--yes', '--function', 'maintain'], lambda.env);
    expect(requeued).toMatchObject({ code: 0, stdout: '1 requeued\n' });
    expect(invoked).toHaveLength(2);
    expect((await t.outboxRow(id))['state']).toBe(0);
  });

  it('takes the function that was typed before the URL of the environment, and refuses both', async () => {
    const env = { ...lambda.env, RELAYBOX_DATABASE_URL: 'postgres://x:y@127.0.0.1:1/z' };
    expect((await cli(['status', '--function', 'maintain'], env)).code).toBe(0);
    const both = await cli(['status', '--function', 'maintain', '--url', t.url], lambda.env);
    expect(both.code).toBe(2);
  });

  it('tells an absent function, a wrong one, and a refused request apart', async () => {
    const absent = await cli(['status', '--function', 'absent'], lambda.env);
    expect(absent.code).toBe(3);
    expect(absent.stderr).toContain('ResourceNotFoundException');
    const wrong = await cli(['status', '--function', 'other'], lambda.env);
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain('is it the maintain function');
    const refused = await cli(['show', 'no-uuid', '--function', 'maintain'], lambda.env);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('id must be a UUID');
  });
});

describe('migrate', () => {
  it('checks, migrates, finds nothing more, and prints its SQL without a database', async () => {
    const empty = await createDatabase();
    try {
      const before = await cli(['migrate', '--check', '--url', empty.url]);
      expect(before.code).toBe(1);
      expect(before.stdout).toContain('missing: step 1 tables');
      const done = await cli(['migrate', '--url', empty.url, '--json']);
      expect(done.code, done.stderr).toBe(0);
      const after = await cli(['migrate', '--check', '--url', empty.url]);
      expect(after).toMatchObject({ code: 0, stdout: expect.stringContaining('as this version needs them') });
    } finally {
      await empty.drop();
    }
    const sql = await cli(['migrate', '--sql', '--schema', 'messaging']);
    expect(sql.code).toBe(0);
    expect(sql.stdout).toContain('CREATE TABLE IF NOT EXISTS "messaging"."outbox_messages"');
  });
});

describe('wrong usage', () => {
  it.each([
    [['nonsense'], 'unknown command'],
    [['status', '--nonsense'], 'unknown option'],
    [['status'], 'say where'],
    [['discard', 'x'], '--reason'],
    [['requeue'], 'takes ids, or --all'],
    [['requeue', '--all', '--url', 'postgres://a:b@h/d'], 'takes ids, or --all'],
    [['pause', '--reason', 'x', '--url', 'postgres://a:b@h/d'], 'name the lane'],
    [['pause', '--destination', 'x', '--reason', 'y', '--for', 'ever'], 'A duration like'],
    [['purge', 'leases'], 'Allowed choices are'],
    [['status', '--url', 'mysql://a:hunter2@h/d'], 'the database URL begins with'],
  ])('%j ends with 2, and says what is wrong', async (args, message) => {
    const { code, stdout, stderr } = await cli(args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stdout + stderr).not.toContain('hunter2');
  });

  it('answers a script in JSON with a code, also where the command line itself is wrong', async () => {
    for (const args of [['nonsense'], ['status', '--nonsense'], ['purge', 'leases'], ['discard', 'x'], []]) {
      const { code, stdout, stderr } = await cli([...args, '--json']);
      expect(code, stderr).toBe(2);
      expect(JSON.parse(stdout), stderr).toMatchObject({ error: { code: 'RELAYBOX_USAGE' } });
      expect(stderr).not.toBe('');
    }
    const { name, version } = JSON.parse(await readFile('package.json', 'utf8')) as Record<string, string>;
    expect(name).toBe('relaybox');
    expect(await cli(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` });
  });

  it('a schema without tables, and a login without rights, have the code of a wrong schema, and exit code 1', async () => {
    const empty = await createDatabase();
    try {
      const absent = await cli(['status', '--json', '--url', empty.url]);
      expect(absent.code, absent.stderr).toBe(1);
      expect(absent.json()).toMatchObject({ error: { code: 'RELAYBOX_SCHEMA' } });
      expect(absent.stderr).toContain('relaybox migrate');
    } finally {
      await empty.drop();
    }
    const role = `relaybox_nobody_${process.pid}`;
    await t.pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'`);
    const url = new URL(t.url);
    url.username = role;
    url.password = 'x';
    const weak = await cli(['status', '--json', '--url', url.href]);
    await t.pool.query(`DROP ROLE ${role}`);
    expect(weak.code, weak.stderr).toBe(1);
    expect(weak.json()).toMatchObject({ error: { code: 'RELAYBOX_SCHEMA' } });
  });

  it('a database out of reach, or one that lets nobody in, ends with 3 and shows no password', async () => {
    for (const url of [
      'postgres://ada:hunter2@127.0.0.1:1/x',
      t.url.replace(/\/[^/]*$/, '/absent').replace(':postgres@', ':hunter2@'),
    ]) {
      const { code, stdout, stderr } = await cli(['status', '--json', '--url', url]);
      expect(code, stderr).toBe(3);
      expect(JSON.parse(stdout)).toHaveProperty('error.code', 'RELAYBOX_DATABASE_UNAVAILABLE');
      expect(stdout + stderr).not.toContain('hunter2');
    }
  });
});
