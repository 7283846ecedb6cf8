import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { operate } from '../../shared/operations/operate.ts';
import type { FateResponse, StatusResponse } from '../../shared/operations/responses.ts';
import { type CliRun, cli, type FakeLambda, fakeLambda } from '../support/cli.ts';
import { engine } from '../support/engine/engine.ts';
import { failedColumns, operatingOn } from '../support/engine/operations.ts';
import { daysAgo } from '../support/engine/values.ts';
import { inboxRow } from '../support/inbox-rows.ts';

const db = await engine.createDatabase();
const { ask, row, outboxRow } = operatingOn(db);
let lambda: FakeLambda;
let invoked: unknown[] = [];
beforeAll(async () => {
  lambda = await fakeLambda(async (name, payload) => {
    invoked.push(payload);
    if (name === 'other') return { removed: {} };
    return await operate(db.operations, payload);
  });
});
afterAll(async () => {
  await lambda.stop();
  await db.drop();
});
beforeEach(async () => {
  invoked = [];
  await db.clear();
});

const run = (...args: string[]): Promise<CliRun> => cli([...args, '--url', db.url]);

describe('looking', () => {
  it('shows the lanes in an aligned table, and the whole of it to a script', async () => {
    await row(failedColumns({ partition_key: 'k', held: true }));
    await row({ destination: 'a-longer-name' });
    await db.inbox.ingest([inboxRow()]);
    await ask({ command: 'pause', destination: 'orders', by: 'Ada', reason: 'migrating' });
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
    for (let n = 0; n < 3; n++) await row(failedColumns());
    await db.inbox.ingest([inboxRow({ failedReason: 'bad \u001B[2Jbody', payload: 'secret' })]);
    const { stdout } = await run('failed', '--limit', '2');
    expect(stdout).toContain('the queue refused it');
    expect(stdout).toContain('bad body');
    expect(stdout).not.toContain('secret');
    const after = /--outbox --after (\S+)/.exec(stdout)?.[1] ?? '';
    const next = await run('failed', '--outbox', '--after', after, '--json');
    expect((next.json() as { outbox: { messages: unknown[] } }).outbox.messages).toHaveLength(1);
  });

  it('counts failures as what they are: the first run is no retry', async () => {
    const once = await row(failedColumns({ retry_count: 1, max_retries: 5 }));
    const usedUp = await row(failedColumns({ retry_count: 3, max_retries: 2 }));
    expect((await run('show', once)).stdout).toMatch(/^failed +1 time, 5 retries allowed$/m);
    expect((await run('show', usedUp)).stdout).toMatch(/^failed +3 times, 2 retries allowed$/m);
    const [headings] = (await run('failed')).stdout.split('\n');
    expect(headings).toMatch(/ FAILURES /);
    expect(headings).not.toContain('RETRIES');
  });

  it('shows a message, its payload only when asked, and ends with 1 where there is none', async () => {
    const id = await row();
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
    const id = await row(failedColumns());
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
    expect((await outboxRow(id)).state).toBe(3);
    expect(await run('requeue', id, '--yes')).toMatchObject({ code: 0, stdout: '1 requeued\n' });
    expect((await outboxRow(id)).state).toBe(0);
  });

  it('says what it would do, and does nothing, with --dry-run', async () => {
    const id = await row(failedColumns());
    const dry = await run('discard', '--all', '--destination', 'orders', '--reason', 'x', '--dry-run');
    expect(dry).toMatchObject({ code: 0, stdout: '1 would be discarded\n' });
    expect((await outboxRow(id)).state).toBe(3);
  });

  it('takes a whole lane in several requests, and tells what was refused with exit code 1', async () => {
    await db.insertMany('outbox', Array(450).fill({ state: 3, processed_at_utc: daysAgo(0) }));
    const all = await run('requeue', '--all', '--destination', 'orders', '--yes', '--json');
    expect(all.code).toBe(0);
    expect((all.json() as FateResponse<'requeue'>).changed).toHaveLength(450);
    expect(all.stderr).toContain('200 so far');
    expect([await db.count('outbox', { state: 0 }), await db.count('outbox')]).toEqual([450, 450]);
    const refused = await run('requeue', randomUUID(), '--yes');
    expect(refused.code).toBe(1);
    expect(refused.stdout).toContain('there is no such message');
  });

  it('keeps who discarded and why', async () => {
    const id = await row(failedColumns());
    await run('discard', id, '--reason', 'sent twice', '--by', 'Ada', '--yes');
    expect((await outboxRow(id)).last_error).toBe('Discarded by Ada: sent twice');
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
    await row({ destination: 'filled' });
    expect((await run(...pause, 'filled')).stdout).not.toContain('Nothing is in this lane');
  });

  it('says of a lane in which nothing is that its name may be a slip, also where there is nothing to decide', async () => {
    await row(failedColumns());
    const hint = 'Nothing is in this lane now. See that its name is right';
    const slip = ['--type', 'order.plcaed'] as const;
    for (const args of [
      ['requeue', '--all', ...slip, '--yes'],
      ['requeue', '--all', ...slip],
      ['discard', '--all', '--destination', 'ordres', '--reason', 'x', '--dry-run'],
      ['resume', ...slip],
      ['failed', ...slip],
    ]) {
      const { code, stdout, stderr } = await run(...args);
      expect(code, stderr).toBe(0);
      expect(stdout, args.join(' ')).toContain(hint);
    }
    expect((await run('requeue', '--all', ...slip, '--yes', '--json')).json()).toMatchObject({ empty: true });
    await row({ destination: 'filled' });
    for (const command of [['requeue', '--all', '--yes'], ['resume'], ['failed']]) {
      expect((await run(...command, '--destination', 'filled')).stdout).not.toContain('Nothing is in this');
    }
  });

  it('refuses what is no id before it asks for a confirmation', async () => {
    const wrong = await run('requeue', 'bad', '--json');
    expect(wrong.code).toBe(2);
    expect(wrong.json()).toMatchObject({ error: { message: expect.stringContaining('bad is no UUID') } });
  });

  it('asks with the figures: how many, of when', async () => {
    const id = await row(failedColumns());
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
    await db.insertMany('outbox', Array(2_500).fill({ state: 2, processed_at_utc: daysAgo(2) }));
    await row();
    expect((await run('purge', 'outbox', '--older-than', '1', '--dry-run')).stdout).toContain('2500 rows');
    const { stdout } = await run('purge', 'outbox', '--older-than', '1', '--yes');
    expect(stdout).toBe('2500 rows of the outbox removed\n');
    expect(await db.rows('outbox', {}, { columns: ['state'] })).toEqual([{ state: 0 }]);
  });
});

describe('judging', () => {
  it('doctor and health end with 1 on a finding and with 0 without', async () => {
    expect((await run('health')).code).toBe(1);
    expect((await run('doctor')).stdout).toContain('no relay has ever reported');
    await db.recordCycle('outbox-relay');
    expect(await run('health')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ready\n/) });
    const doctor = await run('doctor', '--json');
    expect(doctor.code, doctor.stdout).toBe(0);
    await row(failedColumns());
    const found = await run('doctor');
    expect(found.code).toBe(1);
    expect(found.stdout).toContain('relaybox failed --destination orders, then requeue or discard');
  });
});

describe('through the deployed function', () => {
  it('asks and decides as with a URL', async () => {
    const id = await row(failedColumns());
    const status = await cli(['status', '--function', 'maintain', '--json'], lambda.env);
    expect(status.code, status.stderr).toBe(0);
    expect((status.json() as StatusResponse).lanes).toHaveLength(1);
    const requeued = await cli(['requeue', id, '--yes', '--function', 'maintain'], lambda.env);
    expect(requeued).toMatchObject({ code: 0, stdout: '1 requeued\n' });
    expect(invoked).toHaveLength(2);
    expect((await outboxRow(id)).state).toBe(0);
  });

  it('takes the function that was typed before the URL of the environment, and refuses both', async () => {
    const env = { ...lambda.env, RELAYBOX_DATABASE_URL: 'postgres://x:y@127.0.0.1:1/z' };
    expect((await cli(['status', '--function', 'maintain'], env)).code).toBe(0);
    const both = await cli(['status', '--function', 'maintain', '--url', db.url], lambda.env);
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
    const empty = await engine.createEmpty();
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
    const sql = await cli(['migrate', '--sql', '--engine', engine.name, '--schema', 'messaging']);
    expect(sql.code).toBe(0);
    expect(sql.stdout).toMatch(
      /CREATE TABLE (?:IF NOT EXISTS "messaging"."outbox_messages"|\[messaging\]\.\[OutboxMessages\])/,
    );
  });
});

describe('a database that can not be used', () => {
  it('a schema without tables, and a login without rights, have the code of a wrong schema, and exit code 1', async () => {
    const empty = await engine.createEmpty();
    try {
      const absent = await cli(['status', '--json', '--url', empty.url]);
      expect(absent.code, absent.stderr).toBe(1);
      expect(absent.json()).toMatchObject({ error: { code: 'RELAYBOX_SCHEMA' } });
      expect(absent.stderr).toContain('relaybox migrate');
      const doctor = await cli(['doctor', '--url', empty.url]);
      expect(doctor.code, doctor.stderr).toBe(1);
      expect(doctor.stdout).toMatch(/^PROBLEM +schema: [^\n]*\n +run "relaybox migrate"/);
      expect(doctor.stdout).toContain('first do what is said of schema, then run the doctor again');
      expect(doctor.stdout).not.toContain('as a user that may');
    } finally {
      await empty.drop();
    }
    const stranger = await db.stranger();
    const weak = await cli(['status', '--json', '--url', stranger.url]);
    await stranger.remove();
    expect(weak.code, weak.stderr).toBe(1);
    expect(weak.json()).toMatchObject({ error: { code: 'RELAYBOX_SCHEMA' } });
  });

  it('a database out of reach, or one that lets nobody in, ends with 3 and shows no password', async () => {
    const [unreachable, absent] = [new URL(db.url), new URL(db.url)];
    unreachable.port = '1';
    absent.pathname = '/absent';
    for (const { href: url } of [unreachable, absent].map((target) => {
      target.password = 'hunter2';
      return target;
    })) {
      const { code, stdout, stderr } = await cli(['status', '--json', '--url', url]);
      expect(code, stderr).toBe(3);
      expect(JSON.parse(stdout)).toHaveProperty('error.code', 'RELAYBOX_DATABASE_UNAVAILABLE');
      expect(stdout + stderr).not.toContain('hunter2');
    }
  });
});
