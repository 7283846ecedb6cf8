import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { readSettings } from '../../shared/lambda/config.ts';
import { closeConnections } from '../../shared/lambda/connections.ts';
import { inboxHandlerFor } from '../../shared/lambda/inbox-handler.ts';
import { ingestFor } from '../../shared/lambda/ingest.ts';
import { relayFor } from '../../shared/lambda/relay.ts';
import { sqsConsumerFor } from '../../shared/lambda/sqs-consumer.ts';
import { Rejected } from '../../shared/message/errors.ts';
import type { OutgoingMessage } from '../../shared/message/message.ts';
import type { Publisher } from '../../shared/publish/publisher.ts';
import { engine } from '../support/engine/engine.ts';
import { lambdaEngine } from '../support/engine/lambda.ts';
import type { EngineDatabase } from '../support/engine/test-engine.ts';
import { inboxRow } from '../support/inbox-rows.ts';

const db = await engine.createDatabase();
const named = await engine.createDatabase({ tables: { outboxTable: 'Our outbox', inboxTable: 'Our inbox' } });

beforeAll(() => vi.stubEnv('POWERTOOLS_LOG_LEVEL', 'SILENT'));
afterEach(async () => {
  await closeConnections();
  await db.clear();
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await db.drop();
  await named.drop();
});

const context = { getRemainingTimeInMillis: () => 20_000 };
const settingsOf = (env: Record<string, string> = {}, database: EngineDatabase = db) =>
  readSettings({ RELAYBOX_DATABASE_URL: database.url, RELAYBOX_INBOX_SOURCE: 'shop', ...env });

/** A broker in memory that refuses the payload 0 for good. */
function broker() {
  const sent: string[] = [];
  const publisherOf = (name: string): Publisher<OutgoingMessage> => ({
    limits: { entries: 10, callBytes: 1_000_000, ordered: true },
    prepare: (entry) => ({ entry, bytes: entry.payload.length }),
    send: async (entries) =>
      entries.map(({ payload }) => {
        if (payload === '0') return { kind: 'rejected', reason: 'never' };
        sent.push(`${name} ${payload}`);
        return { kind: 'published' };
      }),
    classify: () => ({ kind: 'unavailable', reason: 'down' }),
  });
  const destinations = ['orders', 'events'].map(
    (name) => [name, publisherOf(name) as Publisher<unknown>] as const,
  );
  return { sent, destinations: new Map(destinations) };
}

const record = (id: string) => ({
  messageId: `sqs-${id}`,
  body: '{}',
  messageAttributes: { 'relaybox-id': { stringValue: id }, 'relaybox-type': { stringValue: 'order.placed' } },
});

describe('what the relay’s environment says is what it does', () => {
  it.each([
    ['keep', { outbox: 1, archive: 0 }],
    ['delete', { outbox: 0, archive: 0 }],
    ['archive', { outbox: 0, archive: 1 }],
  ])('RELAYBOX_AFTER_SUCCESS %s', async (afterSuccess, rows) => {
    await db.add([{ destination: 'orders', messageType: 't', payload: 1 }]);
    const { sent, destinations } = broker();
    const settings = settingsOf({ RELAYBOX_AFTER_SUCCESS: afterSuccess });
    await relayFor(lambdaEngine)({ settings, destinations })({}, context);
    expect(sent).toEqual(['orders 1']);
    expect({ outbox: await db.count('outbox'), archive: await db.count('archive') }).toEqual(rows);
  });

  it('RELAYBOX_ON_FAILED_KEY, and a destination’s own instead', async () => {
    const message = { messageType: 't', partitionKey: 'k' };
    await db.add(
      ['orders', 'events'].flatMap((destination) =>
        [0, 1].map((payload) => ({ ...message, destination, payload })),
      ),
    );
    const { sent, destinations } = broker();
    const settings = settingsOf({
      RELAYBOX_SOURCE: 'shop',
      RELAYBOX_ON_FAILED_KEY: 'skip',
      RELAYBOX_DESTINATIONS: '{"orders":{"type":"eventbridge","bus":"b","onFailedKey":"block"}}',
    });
    await relayFor(lambdaEngine)({ settings, destinations })({}, context);
    expect(sent).toEqual(['events 1']);
    expect(await db.count('outbox', { destination: 'orders', state: 0 })).toBe(1);
  });
});

describe('what inboxHandler is told is what it does', () => {
  it.each([
    ['block', ['other']],
    ['skip', ['follower', 'other']],
  ] as const)('onFailedKey %s', async (onFailedKey, handled) => {
    const rows = ['head', 'follower', 'other'].map((externalMessageId) =>
      inboxRow({ externalMessageId, partitionKey: externalMessageId === 'other' ? 'other' : 'k' }),
    );
    await db.inbox.ingest(rows);
    const handler = inboxHandlerFor(lambdaEngine)(
      { messageType: 'order.placed', onFailedKey, settings: settingsOf() },
      async ({ id }, { tx }) => {
        if (id === 'head') throw new Rejected('never');
        await db.effects.write(tx, id);
      },
    );
    await handler({}, context);
    expect((await db.effects.all()).sort()).toEqual(handled);
  });

  it('batchSize is what one claim takes', async () => {
    await db.inbox.ingest(Array.from({ length: 5 }, () => inboxRow()));
    const inHand: number[] = [];
    const options = { messageType: 'order.placed', parallelism: 1, settings: settingsOf() };
    const handler = inboxHandlerFor(lambdaEngine)({ ...options, batchSize: 2 }, async () => {
      inHand.push(await db.count('inbox', { state: 1 }));
    });
    await handler({}, context);
    expect(inHand).toEqual([2, 1, 2, 1, 1]);
  });
});

describe('RELAYBOX_CONSUMER', () => {
  it('says whose copies ingest stores and a handler handles', async () => {
    const handled: string[] = [];
    for (const consumer of ['a', 'b']) {
      const settings = settingsOf({ RELAYBOX_CONSUMER: consumer });
      await ingestFor(lambdaEngine)({ settings })({ Records: [record('1')] }, context);
    }
    const of = (consumer: string) =>
      inboxHandlerFor(lambdaEngine)(
        { messageType: 'order.placed', settings: settingsOf({ RELAYBOX_CONSUMER: consumer }) },
        () => void handled.push(consumer),
      );
    await of('')({}, context);
    expect(handled).toEqual([]);
    await of('b')({}, context);
    expect(handled).toEqual(['b']);
    expect(await db.rows('inbox', { state: 0 }, { columns: ['consumer'] })).toEqual([{ consumer: 'a' }]);
  });

  it('says whose receipts an sqsConsumer’s are', async () => {
    const runs: string[] = [];
    for (const consumer of ['a', 'b', 'a']) {
      const settings = settingsOf({ RELAYBOX_CONSUMER: consumer });
      const handler = sqsConsumerFor(lambdaEngine)({ settings }, () => void runs.push(consumer));
      expect(await handler({ Records: [record('1')] }, context)).toEqual({ batchItemFailures: [] });
    }
    expect(runs).toEqual(['a', 'b']);
  });
});

describe('RELAYBOX_OUTBOX_TABLE and RELAYBOX_INBOX_TABLE', () => {
  it('name the tables of every function', async () => {
    const env = { RELAYBOX_OUTBOX_TABLE: 'Our outbox', RELAYBOX_INBOX_TABLE: 'Our inbox' };
    const settings = settingsOf(env, named);
    await ingestFor(lambdaEngine)({ settings })({ Records: [record('1')] }, context);
    const handler = inboxHandlerFor(lambdaEngine)(
      { messageType: 'order.placed', settings },
      async (_, { outbox }) => {
        await outbox.add({ destination: 'orders', messageType: 't', payload: 1 });
      },
    );
    expect(await handler({}, context)).toMatchObject({ handled: 1 });
    const { sent, destinations } = broker();
    await relayFor(lambdaEngine)({ settings, destinations })({}, context);
    expect(sent).toEqual(['orders 1']);
  });
});
