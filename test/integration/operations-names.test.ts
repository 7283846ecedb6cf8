import { afterAll, expect, it } from 'vitest';
import { Deadline } from '../../shared/delivery/deadline.ts';
import { silent } from '../../shared/delivery/telemetry.ts';
import { maintain } from '../../shared/operations/maintain.ts';
import { operate } from '../../shared/operations/operate.ts';
import { cli } from '../support/cli.ts';
import { engine } from '../support/engine/engine.ts';
import { daysAgo } from '../support/engine/values.ts';

const tables = { schema: 'My "schema"', outboxTable: "out'box", inboxTable: 'Inbox' };
const db = await engine.createDatabase({ timezone: 'Asia/Kolkata', tables });
afterAll(() => db.drop());

it('every command works with tables of odd names, in a database of an odd time zone', async () => {
  const id = await db.insert('outbox', { state: 3, processed_at_utc: daysAgo(0) });
  await db.sql({
    postgres: `UPDATE ${db.tables.outbox} SET processed_at_utc = '2026-01-02T03:04:05Z'`,
    sqlserver: `UPDATE ${db.tables.outbox} SET [ProcessedAtUtc] = '2026-01-02T03:04:05+00:00'`,
  });
  await db.recordCycle('outbox-relay');
  const ask = (request: Record<string, unknown>) => operate(db.operations, request);
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
  const report = await maintain(db.maintenance, { deadline: Deadline.in(10_000), telemetry: silent });
  expect(report.failed).toEqual({});
  const names = ['--schema', tables.schema, '--outbox-table', tables.outboxTable, '--inbox-table', 'Inbox'];
  const run = await cli(['show', id, '--url', db.url, ...names]);
  expect(run.stdout).toMatch(/state +Discarded/);
});
