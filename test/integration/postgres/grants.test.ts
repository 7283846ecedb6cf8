import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../../shared/message/id.ts';
import { checkSchema, type Needs, needs } from '../../../shared/store/postgres/check.ts';
import { connect, type PostgresDatabase } from '../../../shared/store/postgres/connections.ts';
import { postgresInboxStore } from '../../../shared/store/postgres/inbox-store.ts';
import { recordCycle } from '../../../shared/store/postgres/operations.ts';
import { postgresOutboxStore } from '../../../shared/store/postgres/outbox-store.ts';
import { postgresOutbox } from '../../../shared/store/postgres/producer.ts';
import { createMigratedDatabase, type MigratedDatabase } from '../../support/migrated.ts';

const limits = { idleMs: 5_000, lockMs: 5_000, statementMs: 5_000 };
const roles: string[] = [];
const opened: PostgresDatabase[] = [];
let db: MigratedDatabase;

beforeAll(async () => {
  db = await createMigratedDatabase();
});
afterAll(async () => {
  await Promise.all(opened.map((database) => database.end()));
  for (const role of roles) await db.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  await db.drop();
});

/** A login that has what the check asks for, because it asked for it, and nothing else. */
async function granted(name: string, needed: Needs): Promise<PostgresDatabase> {
  const role = `relaybox_${name}_${process.pid}`;
  await db.pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'`);
  roles.push(role);
  await db.pool.query(
    `GRANT USAGE ON SCHEMA public TO ${role}; GRANT SELECT ON ${db.tables.version} TO ${role}`,
  );
  const url = new URL(db.url);
  url.username = role;
  url.password = 'x';
  const database = connect({ url: url.href });
  opened.push(database);
  const error = await checkSchema(database, db.tables, needed).catch((thrown: Error) => thrown);
  await db.pool.query((error as Error).message.slice((error as Error).message.indexOf('GRANT')));
  await checkSchema(database, db.tables, needed);
  return database;
}

describe('the rights that the check asks for are enough for the work', () => {
  test('of a producer', async () => {
    const database = await granted('producer', needs.producer);
    const transaction = await database.begin(limits);
    const messages = ['a', 'b', 'c', 'd'].map((partitionKey) => ({
      destination: 'orders',
      messageType: 'order.placed',
      payload: 1,
      partitionKey,
    }));
    const results = await postgresOutbox({ serializeKeys: true }).add(transaction.tx, messages);
    await transaction.commit();
    expect(results.every((result) => result.added)).toBe(true);
  });

  test('of a relay', async () => {
    const database = await granted('relay', needs.relay);
    const store = postgresOutboxStore(database, db.tables);
    expect(await store.dueLanes()).toEqual([{ destination: 'orders', state: 'ready' }]);
    const lease = await store.lease({ destination: 'orders', limit: 64, leaseMs: 30_000 });
    if (lease === undefined) throw new Error('no lease');
    const { messages } = await store.read(lease, { limit: 10, maxBytes: 1e6 });
    const [first, second, third, fourth] = messages;
    if (!first || !second || !third || !fourth) throw new Error('nothing to settle');
    const options = { leaseMs: 30_000, onFailedKey: 'block' } as const;
    const none = { published: [], failed: [], rejected: [] };
    await store.settle(lease, { ...none, published: [first] }, { ...options, afterSuccess: 'archive' });
    await store.settle(lease, { ...none, published: [second] }, { ...options, afterSuccess: 'delete' });
    const result = await store.settle(
      lease,
      {
        published: [],
        failed: [{ message: third, reason: 'no', retryInSeconds: 60 }],
        rejected: [{ message: fourth, reason: 'never' }],
      },
      { ...options, afterSuccess: 'keep' },
    );
    expect(result.settled).toHaveLength(2);
    await store.release(lease);
    await store.openLane({ destination: 'orders', reason: 'down', pauseSeconds: 0, tried: [] });
    const probe = await store.takeProbe({ destination: 'orders', leaseMs: 1000 });
    if (probe) await store.probePassed(probe);
    await store.secondsToNextDue();
    await recordCycle(database, db.tables, 'outbox-relay');
  });

  const row = {
    consumer: '',
    source: 'shop',
    messageType: 'order.placed',
    payload: '{}',
    headers: null,
    correlationId: null,
    maxRetries: 5,
    failedReason: null,
  };

  test('of an ingest', async () => {
    const database = await granted('ingest', needs.ingest);
    const store = postgresInboxStore(database, db.tables);
    const rows = ['1', '2', '3', '4', '4'].map((externalMessageId) => ({
      ...row,
      externalMessageId,
      partitionKey: externalMessageId === '1' ? 'k' : null,
    }));
    const results = await store.ingest(rows);
    expect(results.map((result) => result.added)).toEqual([true, true, true, true, false]);
    await recordCycle(database, db.tables, 'inbox-ingest');
  });

  test('of a handler', async () => {
    const database = await granted('handler', needs.handler);
    const store = postgresInboxStore(database, db.tables);
    const { messages } = await store.claim({
      consumer: '',
      messageType: 'order.placed',
      limit: 10,
      maxBytes: 1e6,
      leaseMs: 30_000,
      onFailedKey: 'block',
    });
    expect(messages).toHaveLength(4);
    for (const message of messages
      .filter((each) => each.partitionKey !== null)
      .concat(messages.slice(0, 1))) {
      const transaction = await store.begin(limits);
      await postgresOutbox().add(transaction.executor, {
        destination: 'events',
        messageType: 'invoice.created',
        payload: 1,
      });
      await store.markProcessed(transaction, message);
      await transaction.commit();
    }
    await store.markFailed(
      messages.slice(1, 3).map((message) => ({ message, reason: newId(), retryInSeconds: 5 })),
      { onFailedKey: 'block' },
    );
    await store.release(messages);
    await store.secondsToNextDue({ consumer: '', messageType: 'order.placed' });
    await recordCycle(database, db.tables, 'inbox-handler');
  });

  test('of a direct consumer', async () => {
    const database = await granted('consumer', needs.consumer);
    const store = postgresInboxStore(database, db.tables);
    const receipt = { consumer: 'emails', source: 'shop', externalMessageId: '1' };
    for (const first of [true, false]) {
      const transaction = await store.begin(limits);
      expect(await store.receive(transaction, receipt)).toBe(first);
      await transaction.commit();
    }
  });
});
