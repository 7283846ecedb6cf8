import { afterAll, beforeEach, expect, it } from 'vitest';
import type { Finding } from '../../../shared/operations/responses.ts';
import { connect } from '../../../shared/store/postgres/connections.ts';
import { postgresOperations, recordCycle } from '../../../shared/store/postgres/operations.ts';
import { postgresOutboxStore } from '../../../shared/store/postgres/outbox-store.ts';
import { createMigratedDatabase } from '../../support/migrated.ts';

const { pool, tables, url, drop } = await createMigratedDatabase();
const database = connect({ url });
const leases = postgresOutboxStore(database, tables);
const { operations } = postgresOperations({ source: database, leases });
afterAll(async () => {
  await database.end();
  await drop();
});
beforeEach(() => recordCycle(database, tables, 'outbox-relay'));

async function finding(check: string): Promise<Finding | undefined> {
  const { findings } = await operations.doctor({ command: 'doctor' });
  return findings.find((each) => each.check === check && each.severity !== 'ok');
}

it('finds nothing wrong with an installation in order', async () => {
  const { worst, findings } = await operations.doctor({ command: 'doctor' });
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
  await pool.query('DROP INDEX ix_outbox_messages_failed');
  expect(await finding('index')).toMatchObject({
    severity: 'problem',
    what: expect.stringContaining('ix_outbox_messages_failed" is missing'),
  });
  await pool.query(
    'CREATE INDEX ix_outbox_messages_failed ON outbox_messages (destination, id) WHERE state = 3',
  );
  await pool.query(
    "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ix_outbox_messages_failed'::regclass",
  );
  expect(await finding('index')).toMatchObject({
    severity: 'warning',
    what: expect.stringContaining('invalid'),
  });
  await pool.query(
    "UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'ix_outbox_messages_failed'::regclass",
  );
});

it('finds autovacuum turned off for a table', async () => {
  await pool.query('ALTER TABLE outbox_messages SET (autovacuum_enabled = false)');
  expect(await finding('vacuum')).toMatchObject({ severity: 'problem' });
  await pool.query('ALTER TABLE outbox_messages RESET (autovacuum_enabled)');
});
