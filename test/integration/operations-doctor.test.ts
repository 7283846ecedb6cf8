import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Finding } from '../../shared/operations/responses.ts';
import { postgresOperations, recordCycle } from '../../shared/store/postgres/operations.ts';
import { inboxRow } from '../support/inbox.ts';
import { createOperations, failedColumns, type OperationsFixture } from '../support/operations.ts';

let t: OperationsFixture;
beforeAll(async () => {
  t = await createOperations();
});
afterAll(() => t.drop());
beforeEach(async () => {
  await t.pool.query(
    'TRUNCATE outbox_messages, outbox_leases, outbox_lanes, inbox_messages, inbox_keys, inbox_lanes, relaybox_workers',
  );
  await recordCycle(t.pool, t.tables, 'outbox-relay');
});

async function finding(check: string): Promise<Finding | undefined> {
  const { findings } = await t.ask({ command: 'doctor' });
  return findings.find((each) => each.check === check && each.severity !== 'ok');
}

it('finds nothing wrong with an installation in order', async () => {
  const { worst, findings } = await t.ask({ command: 'doctor' });
  expect(findings.filter(({ severity }) => severity !== 'ok')).toEqual([]);
  expect(worst).toBe('ok');
  expect(findings.map(({ check }) => check).sort()).toEqual([
    'connection',
    'foreign-worker',
    'index',
    'lane',
    'old-transaction',
    'orphaned',
    'schema',
    'stranded-key',
    'unnumbered',
    'vacuum',
    'worker',
  ]);
});

it('finds an index that is missing, and one that an interrupted build left invalid', async () => {
  await t.pool.query('DROP INDEX ix_outbox_messages_failed');
  expect(await finding('index')).toMatchObject({
    severity: 'problem',
    what: expect.stringContaining('ix_outbox_messages_failed" is missing'),
  });
  await t.pool.query(
    'CREATE INDEX ix_outbox_messages_failed ON outbox_messages (destination, id) WHERE state = 3',
  );
  await t.pool.query(
    "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ix_outbox_messages_failed'::regclass",
  );
  expect(await finding('index')).toMatchObject({
    severity: 'warning',
    what: expect.stringContaining('invalid'),
  });
  await t.pool.query(
    "UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'ix_outbox_messages_failed'::regclass",
  );
});

it("finds another program's outbox worker by its claims, and by what it published", async () => {
  await t.row({ state: 1, locked_until_utc: new Date(Date.now() + 60_000) });
  expect(await finding('foreign-worker')).toMatchObject({
    severity: 'problem',
    what: expect.stringContaining('1 rows are in its claim'),
  });
  await t.pool.query('UPDATE outbox_messages SET state = 2, processed_at_utc = now()');
  expect(await finding('foreign-worker')).toMatchObject({
    what: expect.stringContaining("1 of the last hour's"),
  });
});

it('does not take rows that the relay published for those of another program', async () => {
  await t.row();
  const buckets = Array.from({ length: 64 }, (_, bucket) => bucket);
  const lease = await t.outbox.lease({ destination: 'orders', limit: 64, leaseMs: 20_000, buckets });
  if (lease === undefined) throw new Error('no lease');
  const { messages } = await t.outbox.read(lease, { limit: 9, maxBytes: 1e6 });
  await t.outbox.settle(
    lease,
    { published: messages, failed: [], rejected: [] },
    { leaseMs: 20_000, afterSuccess: 'keep', onFailedKey: 'block' },
  );
  expect((await t.rows('SELECT state FROM outbox_messages'))[0]?.['state']).toBe(2);
  expect(await finding('foreign-worker')).toBeUndefined();
});

it('finds messages without a place in the order, held behind nothing, or in a key without a row', async () => {
  await t.row({ sequence: null });
  expect(await finding('unnumbered')).toMatchObject({ severity: 'warning' });
  await t.row({ partition_key: 'k', held: true });
  expect(await finding('orphaned')).toMatchObject({ severity: 'warning' });
  await t.store.ingest([inboxRow({ partitionKey: 'k' })]);
  await t.pool.query('DELETE FROM inbox_keys');
  expect(await finding('stranded-key')).toMatchObject({ severity: 'problem' });
});

it('says of lanes what is wrong, and with which command to go on', async () => {
  await t.ask({ command: 'pause', destination: 'orders', by: 'Ada', reason: 'partner migrates' });
  expect(await finding('lane')).toMatchObject({
    severity: 'warning',
    what: expect.stringContaining('paused by Ada'),
    todo: 'relaybox resume --destination orders',
  });
  await t.ask({ command: 'resume', destination: 'orders' });
  await t.row(failedColumns({ partition_key: 'k', held: true }));
  expect(await finding('lane')).toMatchObject({
    severity: 'problem',
    what: expect.stringContaining('1 key of orders waits'),
  });
  await t.pool.query('TRUNCATE outbox_messages');
  await t.outbox.openLane({
    destination: 'orders',
    reason: 'the queue does not exist',
    pauseSeconds: 60,
    tried: [],
  });
  expect(await finding('lane')).toMatchObject({
    severity: 'problem',
    what: expect.stringContaining('the queue does not exist'),
  });
  await t.pool.query('TRUNCATE outbox_lanes');
  await t.store.ingest([inboxRow({ messageType: 'nobody.wants' })]);
  await t.pool.query("UPDATE inbox_messages SET created_at_utc = now() - interval '5 minutes'");
  expect(await finding('lane')).toMatchObject({
    severity: 'problem',
    what: expect.stringContaining(
      '1 message of type nobody.wants is due, and no handler has asked for that type ever',
    ),
  });
});

it('finds a worker that has stopped, and one that never was', async () => {
  await t.pool.query("UPDATE relaybox_workers SET last_cycle_at_utc = now() - interval '1 hour'");
  expect(await finding('worker')).toMatchObject({
    what: expect.stringContaining('outbox-relay was 3600 s ago'),
  });
  await t.pool.query('TRUNCATE relaybox_workers');
  expect(await finding('worker')).toMatchObject({ what: expect.stringContaining('ever') });
});

it('finds autovacuum turned off for a table', async () => {
  await t.pool.query('ALTER TABLE outbox_messages SET (autovacuum_enabled = false)');
  expect(await finding('vacuum')).toMatchObject({ severity: 'problem' });
  await t.pool.query('ALTER TABLE outbox_messages RESET (autovacuum_enabled)');
});

it('names the missing migration, and what one login may not look at hides nothing else', async () => {
  await t.pool.query("CREATE ROLE watcher LOGIN PASSWORD 'watcher'");
  const url = new URL(t.url);
  url.username = 'watcher';
  url.password = 'watcher';
  const pool = new pg.Pool({ connectionString: url.href, max: 2 });
  try {
    const { operations } = postgresOperations({ source: pool, leases: t.outbox });
    const { worst, findings } = await operations.doctor({ command: 'doctor' });
    expect(worst).toBe('problem');
    expect(findings.find(({ check }) => check === 'schema')).toMatchObject({
      severity: 'problem',
      what: expect.stringContaining('GRANT'),
    });
    expect(findings.find(({ check }) => check === 'lane')?.severity).toBe('unknown');
    expect(findings.find(({ check }) => check === 'connection')?.severity).toBe('ok');
  } finally {
    await pool.end();
    await t.pool.query('DROP ROLE watcher');
  }
  await t.pool.query('ALTER TABLE relaybox_schema_version RENAME TO away');
  expect(await finding('schema')).toMatchObject({
    severity: 'problem',
    what: expect.stringContaining('lacks migration'),
  });
  expect(await t.ask({ command: 'health' })).toMatchObject({ ready: false });
  await t.pool.query('ALTER TABLE away RENAME TO relaybox_schema_version');
});
