import { afterAll, beforeEach, expect, it } from 'vitest';
import type { Finding } from '../../shared/operations/responses.ts';
import { engine } from '../support/engine/engine.ts';
import { failedColumns, operatingOn } from '../support/engine/operations.ts';
import { daysAgo, secondsFromNow } from '../support/engine/values.ts';
import { inboxRow } from '../support/inbox-rows.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
beforeEach(async () => {
  await db.clear();
  await db.recordCycle('outbox-relay');
});

const { ask, row } = operatingOn(db);

async function finding(check: string): Promise<Finding | undefined> {
  const { findings } = await ask({ command: 'doctor' });
  return findings.find((each) => each.check === check && each.severity !== 'ok');
}

it('finds nothing wrong with an installation in order', async () => {
  const { worst, findings } = await ask({ command: 'doctor' });
  expect(findings.filter(({ severity }) => severity !== 'ok')).toEqual([]);
  expect(worst).toBe('ok');
});

it("finds another program's outbox worker by its claims, and by what it published", async () => {
  await row({ state: 1, locked_until_utc: secondsFromNow(60) });
  expect(await finding('foreign-worker')).toMatchObject({
    severity: 'problem',
    what: expect.stringContaining('1 rows are in its claim'),
  });
  await db.update('outbox', { state: 2, processed_at_utc: daysAgo(0) });
  expect(await finding('foreign-worker')).toMatchObject({
    what: expect.stringContaining("1 of the last hour's"),
  });
});

it('does not take rows that the relay published for those of another program', async () => {
  await row();
  const buckets = Array.from({ length: 64 }, (_, bucket) => bucket);
  const lease = await db.outbox.lease({ destination: 'orders', limit: 64, leaseMs: 20_000, buckets });
  if (lease === undefined) throw new Error('no lease');
  const { messages } = await db.outbox.read(lease, { limit: 9, maxBytes: 1e6 });
  await db.outbox.settle(
    lease,
    { published: messages, failed: [], rejected: [] },
    { leaseMs: 20_000, afterSuccess: 'keep', onFailedKey: 'block' },
  );
  expect(await db.count('outbox', { state: 2 })).toBe(1);
  expect(await finding('foreign-worker')).toBeUndefined();
});

it('finds messages without a place in the order, held behind nothing, or in a key without a row', async () => {
  await row({ sequence: null });
  expect(await finding('unnumbered')).toMatchObject({ severity: 'warning' });
  await row({ partition_key: 'k', held: true });
  expect(await finding('orphaned')).toMatchObject({ severity: 'warning' });
  await db.inbox.ingest([inboxRow({ partitionKey: 'k' })]);
  await db.clear('keys');
  expect(await finding('stranded-key')).toMatchObject({ severity: 'problem' });
});

it('says of lanes what is wrong, and with which command to go on', async () => {
  await ask({ command: 'pause', destination: 'orders', by: 'Ada', reason: 'partner migrates' });
  expect(await finding('lane')).toMatchObject({
    severity: 'warning',
    what: expect.stringContaining('paused by Ada'),
    todo: 'relaybox resume --destination orders',
  });
  await ask({ command: 'resume', destination: 'orders' });
  await row(failedColumns({ partition_key: 'k', held: true }));
  expect(await finding('lane')).toMatchObject({
    severity: 'problem',
    what: expect.stringContaining('1 key of orders waits'),
  });
  await db.clear('outbox');
  await db.outbox.openLane({
    destination: 'orders',
    reason: 'the queue does not exist',
    pauseSeconds: 60,
    tried: [],
  });
  expect(await finding('lane')).toMatchObject({
    severity: 'problem',
    what: expect.stringContaining('the queue does not exist'),
  });
  await db.clear('lanes');
  await db.inbox.ingest([inboxRow({ messageType: 'nobody.wants' })]);
  await db.update('inbox', { created_at_utc: secondsFromNow(-300) });
  expect(await finding('lane')).toMatchObject({
    severity: 'problem',
    what: expect.stringContaining(
      '1 message of type nobody.wants is due, and no handler has asked for that type ever',
    ),
  });
});

it('finds a worker that has stopped, and one that never was', async () => {
  await db.update('workers', { last_cycle_at_utc: secondsFromNow(-3_600) });
  expect(await finding('worker')).toMatchObject({
    what: expect.stringMatching(/outbox-relay was 360\d s ago/),
  });
  await db.clear('workers');
  expect(await finding('worker')).toMatchObject({ what: expect.stringContaining('ever') });
});

it('names the missing migration, and what one login may not look at hides nothing else', async () => {
  const stranger = await db.stranger();
  const theirs = db.instance({ url: stranger.url, max: 2 });
  try {
    const { worst, findings } = await theirs.operations.doctor({ command: 'doctor' });
    expect(worst).toBe('problem');
    expect(findings.find(({ check }) => check === 'schema')).toMatchObject({
      severity: 'problem',
      what: expect.stringContaining('GRANT'),
    });
    expect(findings.find(({ check }) => check === 'lane')?.severity).toBe('unknown');
    expect(findings.find(({ check }) => check === 'connection')?.severity).toBe('ok');
  } finally {
    await theirs.end();
    await stranger.remove();
  }
  await db.sql({
    postgres: 'ALTER TABLE relaybox_schema_version RENAME TO away',
    sqlserver: "EXEC sp_rename N'dbo.RelayboxSchemaVersion', N'Away', N'OBJECT'",
  });
  expect(await finding('schema')).toMatchObject({
    severity: 'problem',
    what: expect.stringContaining('lacks migration'),
  });
  expect(await ask({ command: 'health' })).toMatchObject({ ready: false });
  await db.sql({
    postgres: 'ALTER TABLE away RENAME TO relaybox_schema_version',
    sqlserver: "EXEC sp_rename N'dbo.Away', N'RelayboxSchemaVersion', N'OBJECT'",
  });
});
