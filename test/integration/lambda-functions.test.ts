import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type LocalQueue, type LocalSqs, startSqs } from '../../local/sqs.ts';
import { readSettings, type Settings } from '../../shared/lambda/config.ts';
import { closeConnections } from '../../shared/lambda/connections.ts';
import { maintainFor } from '../../shared/lambda/maintain.ts';
import { migrateFor } from '../../shared/lambda/migrate.ts';
import { relayFor } from '../../shared/lambda/relay.ts';
import { DatabaseUnavailable, SchemaError } from '../../shared/message/errors.ts';
import type { OutgoingMessage } from '../../shared/message/message.ts';
import type { Publisher, SendOutcome } from '../../shared/publish/publisher.ts';
import { engine } from '../support/engine/engine.ts';
import { adminEngine, lambdaEngine } from '../support/engine/lambda.ts';
import { daysAgo } from '../support/engine/values.ts';

const db = await engine.createDatabase();
let sqs: LocalSqs;
let wakes: LocalQueue;
let settings: Settings;

beforeAll(async () => {
  vi.stubEnv('AWS_REGION', 'us-east-1');
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
  sqs = await startSqs();
});
beforeEach(async () => {
  wakes = await sqs.createQueue(`wakes-${Math.random().toString(36).slice(2)}`);
  settings = readSettings({
    RELAYBOX_DATABASE_URL: db.url,
    RELAYBOX_WAKE_QUEUE_URL: wakes.url,
    AWS_ENDPOINT_URL_SQS: sqs.endpoint,
    RELAYBOX_RETRY: '{"firstSeconds":20,"maxSeconds":60}',
  });
  await db.clear();
});
afterEach(closeConnections);
afterAll(async () => {
  vi.unstubAllEnvs();
  await sqs.stop();
  await db.drop();
});

const context = (remainingMs = 20_000) => {
  const end = Date.now() + remainingMs;
  return { getRemainingTimeInMillis: () => end - Date.now() };
};
const wake = (wakeHops = 0) => ({ Records: [{ messageId: 'a', body: JSON.stringify({ wakeHops }) }] });

/** A broker in memory. */
function broker(answer: () => SendOutcome = () => ({ kind: 'published' })) {
  const sent: string[] = [];
  const publisher: Publisher<OutgoingMessage> = {
    limits: { entries: 10, callBytes: 1_000_000, ordered: true },
    prepare: (entry) => ({ entry, bytes: entry.payload.length }),
    async send(entries) {
      return entries.map((entry) => {
        const outcome = answer();
        if (outcome.kind === 'published') sent.push(entry.payload);
        return outcome;
      });
    },
    classify: () => ({ kind: 'unavailable', reason: 'down' }),
  };
  return { sent, destinations: new Map([['orders', publisher as Publisher<unknown>]]) };
}

async function add(count: number): Promise<void> {
  const message = { destination: 'orders', messageType: 'order.placed' };
  await db.add(Array.from({ length: count }, (_, payload) => ({ ...message, payload })));
}

describe('the outbox-relay function', () => {
  it('publishes what is due when it is woken, and acknowledges the wake', async () => {
    const { sent, destinations } = broker();
    const handler = relayFor(lambdaEngine)({ settings, destinations });
    await add(120);
    expect(await handler(wake(), context())).toEqual({ batchItemFailures: [] });
    expect(sent).toHaveLength(120);
    expect(await sqs.depth(wakes)).toEqual({ ready: 0, delayed: 0, inFlight: 0 });
  });

  it('answers a sweep with what it did, and notes the cycle for the health answer', async () => {
    const { destinations } = broker();
    await add(3);
    expect(await relayFor(lambdaEngine)({ settings, destinations })({}, context())).toEqual({
      settled: 3,
      workLeft: false,
      nextDueSeconds: undefined,
    });
    expect(await db.rows('workers', {}, { columns: ['worker'] })).toEqual([{ worker: 'outbox-relay' }]);
  });

  it('wakes itself when a retry comes due', async () => {
    const { destinations } = broker(() => ({ kind: 'failed', reason: 'not now' }));
    await add(1);
    await relayFor(lambdaEngine)({ settings, destinations })(wake(3), context());
    await vi.waitFor(async () => expect((await sqs.depth(wakes)).delayed).toBe(1));
    expect(await sqs.bodies(wakes)).toEqual(['{"wakeHops":0}']);
  });

  it('polls until its time is up in continuous mode, and so needs no wake', async () => {
    const { sent, destinations } = broker();
    const continuous = { ...settings, relay: { ...settings.relay, mode: 'continuous' as const } };
    const handler = relayFor(lambdaEngine)({ settings: continuous, destinations, relay: { pollMs: 50 } });
    const running = handler({}, context(1_200));
    await new Promise((resolve) => setTimeout(resolve, 300));
    await add(2);
    await running;
    expect(sent).toHaveLength(2);
  });

  it('says which migration is missing, and works once it has been run', async () => {
    const { destinations } = broker();
    const handler = relayFor(lambdaEngine)({ settings, destinations });
    await db.sql({
      postgres: 'ALTER TABLE relaybox_schema_version RENAME TO elsewhere',
      sqlserver: "EXEC sp_rename N'dbo.RelayboxSchemaVersion', N'Elsewhere', N'OBJECT'",
    });
    await expect(handler({}, context())).rejects.toThrow(SchemaError);
    await expect(handler({}, context())).rejects.toThrow(/lacks migration 0001_tables/);
    await db.sql({
      postgres: 'ALTER TABLE elsewhere RENAME TO relaybox_schema_version',
      sqlserver: "EXEC sp_rename N'dbo.Elsewhere', N'RelayboxSchemaVersion', N'OBJECT'",
    });
    await expect(handler({}, context())).resolves.toBeDefined();
  });

  it('says that the database is down at a cold start', async () => {
    const url = new URL(db.url);
    url.port = '1';
    url.password = 's3cret';
    const down = readSettings({ RELAYBOX_DATABASE_URL: url.href });
    const failure = relayFor(lambdaEngine)({ settings: down })({}, context());
    await expect(failure).rejects.toThrow(DatabaseUnavailable);
    await expect(failure).rejects.not.toThrow(/s3cret/);
  });
});

describe('the maintain function', () => {
  it('answers an operator, whatever the schema is like', async () => {
    const handler = maintainFor(adminEngine)({ settings });
    await add(2);
    const status = await handler({ command: 'status' }, context());
    expect(status).toMatchObject({
      lanes: [{ lane: { box: 'outbox', destination: 'orders' }, due: { count: 2 } }],
    });
    await expect(handler({ command: 'explode' }, context())).rejects.toMatchObject({
      code: expect.stringContaining('RELAYBOX'),
    });
  });

  it('wakes the relay, or the handlers, after a person’s decision, and nobody for a look or a dry run', async () => {
    const inbox = await sqs.createQueue(`inbox-${Math.random().toString(36).slice(2)}`);
    const handler = maintainFor(adminEngine)({
      settings: { ...settings, inboxWakeQueueUrls: { 'order.placed': inbox.url } },
    });
    await add(1);
    const ended = { state: 3, processed_at_utc: daysAgo(0), last_error: 'it threw' };
    await db.update('outbox', ended);
    const failed = await db.insert('inbox', ended);
    const woken = async () => [await sqs.bodies(wakes), await sqs.bodies(inbox)].map((all) => all.length);
    const requeue = { command: 'requeue', all: true, destination: 'orders' };
    await handler({ command: 'status' }, context());
    await handler({ ...requeue, dryRun: true }, context());
    expect(await woken()).toEqual([0, 0]);
    await handler(requeue, context());
    await vi.waitFor(async () => expect(await woken()).toEqual([1, 0]));
    await handler({ command: 'requeue', ids: [failed] }, context());
    await vi.waitFor(async () => expect(await woken()).toEqual([1, 1]));
  });

  it('removes what retention allows in a cycle', async () => {
    await add(3);
    await db.update('outbox', { state: 2, processed_at_utc: daysAgo(8) });
    const report = await maintainFor(adminEngine)({ settings })({ source: 'aws.scheduler' }, context());
    expect(report).toMatchObject({ removed: { outbox: 3 }, more: false, failed: {} });
  });

  it('keeps published messages as long as it is told', async () => {
    await add(1);
    await db.update('outbox', { state: 2, processed_at_utc: daysAgo(4) });
    const removedAfter = async (days: number) =>
      await maintainFor(adminEngine)({
        settings: readSettings({
          RELAYBOX_DATABASE_URL: db.url,
          RELAYBOX_OUTBOX_RETENTION_DAYS: `${days}`,
        }),
      })({}, context());
    expect(await removedAfter(5)).toMatchObject({ removed: { outbox: 0 } });
    expect(await removedAfter(3)).toMatchObject({ removed: { outbox: 1 } });
  });

  it("keeps a consumer's receipts as long as it is told, whatever the inbox's retention", async () => {
    const keeping = (days: number) =>
      readSettings({
        RELAYBOX_DATABASE_URL: db.url,
        RELAYBOX_INBOX_RETENTION_DAYS: '1',
        RELAYBOX_RECEIPT_RETENTION_DAYS: `${days}`,
      });
    await db.insert('receipts', { digest: Buffer.alloc(32, 1), received_at_utc: daysAgo(40) });
    const removedAfter = async (days: number) =>
      await maintainFor(adminEngine)({ settings: keeping(days) })({}, context());
    expect(await removedAfter(41)).toMatchObject({ removed: { receipts: 0 } });
    expect(await removedAfter(39)).toMatchObject({ removed: { receipts: 1 } });
  });
});

describe('the migrate function', () => {
  it('makes the tables, does nothing the second time, and refuses what it does not understand', async () => {
    const empty = await engine.createEmpty();
    const handler = migrateFor(adminEngine)({ settings: readSettings({ RELAYBOX_DATABASE_URL: empty.url }) });
    const before = await handler({ dryRun: true }, context());
    const steps = expect.arrayContaining([expect.stringMatching(/^1 tables/)]);
    expect(before).toMatchObject({ pending: steps });
    expect(await handler({ RequestType: 'Create' }, context())).toMatchObject({ applied: steps });
    expect(await handler({ RequestType: 'Update' }, context())).toMatchObject({ applied: [] });
    expect(await handler({ dryRun: true }, context())).toMatchObject({ pending: [] });
    await expect(handler({ maxRows: 'many' }, context())).rejects.toThrow(/maxRows that is not a number/);
    await closeConnections();
    await empty.drop();
  });
});
