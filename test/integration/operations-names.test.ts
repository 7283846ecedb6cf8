import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { Deadline } from '../../shared/delivery/deadline.ts';
import { silent } from '../../shared/delivery/telemetry.ts';
import { maintain } from '../../shared/operations/maintain.ts';
import { operate } from '../../shared/operations/operate.ts';
import { postgresOperations, recordCycle } from '../../shared/store/postgres/operations.ts';
import { postgresOutboxStore } from '../../shared/store/postgres/outbox-store.ts';
import { cli } from '../support/cli.ts';
import { createMigratedDatabase } from '../support/migrated.ts';

it('every command works with tables of odd names, in a database of an odd time zone', async () => {
  const tables = { schema: 'My "schema"', outboxTable: "out'box", inboxTable: 'Inbox' };
  const db = await createMigratedDatabase({ timezone: 'Asia/Kolkata' }, tables);
  try {
    const id = randomUUID();
    await db.pool.query(
      `INSERT INTO ${db.tables.outbox} (id, destination, message_type, payload, created_at_utc, state, processed_at_utc)
       VALUES ($1, 'orders', 'x', '{}', now(), 3, '2026-01-02T03:04:05Z')`,
      [id],
    );
    await recordCycle(db.pool, db.tables, 'outbox-relay');
    const leases = postgresOutboxStore(db.pool, tables);
    const { operations, maintenance } = postgresOperations({ source: db.pool, tables, leases });
    const ask = (request: Record<string, unknown>) => operate(operations, request);
    const lane = { destination: 'orders' };
    expect(await ask({ command: 'failed', box: 'outbox' })).toMatchObject({
      messages: [{ id, failedAt: '2026-01-02T03:04:05.000Z' }],
    });
    expect(await ask({ command: 'doctor' })).toMatchObject({ worst: 'warning' });
    for (const request of [
      { command: 'status' },
      { command: 'failed', box: 'inbox' },
      { command: 'show', id },
      { command: 'show', source: 'a', externalMessageId: 'b' },
      { command: 'requeue', ids: [id] },
      { command: 'discard', ids: [id], by: 'x', reason: 'y' },
      { command: 'pause', ...lane, by: 'x', reason: 'y' },
      { command: 'resume', ...lane },
      { command: 'pause', messageType: 'm', by: 'x', reason: 'y' },
      { command: 'purge', from: 'inbox' },
      { command: 'health' },
    ]) {
      expect(await ask(request)).toHaveProperty('command', request.command);
    }
    const report = await maintain(maintenance, { deadline: Deadline.in(10_000), telemetry: silent });
    expect(report.failed).toEqual({});
    const names = ['--schema', tables.schema, '--outbox-table', tables.outboxTable, '--inbox-table', 'Inbox'];
    const run = await cli(['show', id, '--url', db.url, ...names]);
    expect(run.stdout).toMatch(/state +Discarded/);
  } finally {
    await db.drop();
  }
});
