import { afterAll, beforeEach, expect, test } from 'vitest';
import { ConfigurationError } from '../../shared/message/errors.ts';
import type { ClaimedInboxMessage } from '../../shared/store/inbox-store.ts';
import { postgresInboxStore } from '../../shared/store/postgres/inbox-store.ts';
import { claimRequest, createInbox, inboxRow, limits } from '../support/inbox.ts';

const db = await createInbox();
afterAll(() => db.drop());
beforeEach(async () => {
  await db.pool.query('DROP TABLE IF EXISTS effects');
  await db.pool.query(
    'TRUNCATE inbox_messages, inbox_keys; CREATE TABLE effects (n bigserial, key text, id text, beginning bigint, ending bigint); CREATE SEQUENCE IF NOT EXISTS ticks',
  );
});

const types = ['order.placed', 'order.cancelled'];

/** Many ingest and handle a few keys at once, with failures, releases and lost leases. Nothing may be left, or done twice. */
test('hammered from all sides, no message is stranded, doubled, or beside another of its key', async () => {
  const stores = [0, 1, 2, 3].map(() => postgresInboxStore(db.inboxDatabase, db.tables));
  // Ingest commits a little later than it could: that is the moment in which a careless settle would lose a key.
  await db.pool.query(`
    CREATE OR REPLACE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.006); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON inbox_messages DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION dawdle()`);
  const total = 300;
  let made = 0;
  let arriving = true;
  let random = 7;
  const chance = (): number => {
    random = (random * 48271) % 2147483647;
    return random / 2147483647;
  };

  async function ingesting(): Promise<void> {
    while (made < total) {
      const rows = Array.from({ length: 1 + Math.floor(chance() * 3) }, () => {
        made += 1;
        return inboxRow({
          // A key has few messages, so that its last one is settled while another may still arrive.
          partitionKey: `k${Math.floor(made / 6)}`,
          messageType: types[Math.floor(chance() * 2)] as string,
          externalMessageId: `h${made}`,
          maxRetries: 1_000_000,
        });
      });
      await stores[0]?.ingest(chance() < 0.2 ? [...rows, ...rows] : rows);
      // Time for the handlers to drain the keys, so that the last message of a key is settled again and again.
      await new Promise((resolve) => setTimeout(resolve, chance() * 25));
    }
  }

  async function handling(store: (typeof stores)[number], messageType: string): Promise<void> {
    for (;;) {
      const { messages } = await store.claim(claimRequest({ messageType, limit: 2, leaseMs: 2_000 }));
      for (const message of messages) await handle(store, message);
      if (messages.length > 0) continue;
      const [open] = await db.rows(
        'SELECT (SELECT count(*)::int FROM inbox_messages WHERE state < 2) AS messages, (SELECT count(*)::int FROM inbox_keys) AS keys',
      );
      if (!arriving && (open?.['messages'] === 0 || open?.['keys'] === 0)) return;
    }
  }

  async function handle(store: (typeof stores)[number], message: ClaimedInboxMessage): Promise<void> {
    const dice = chance();
    if (dice < 0.1) {
      await store.release([message]);
    } else if (dice < 0.2) {
      await store.markFailed([{ message, reason: 'no', retryInSeconds: 0 }], { onFailedKey: 'block' });
    } else {
      const transaction = await store.begin(limits);
      await transaction.tx.query(
        `INSERT INTO effects (key, id, beginning) VALUES ($1, $2, nextval('ticks'))`,
        [message.partitionKey, message.externalMessageId],
      );
      await transaction.tx.query(`UPDATE effects SET ending = nextval('ticks') WHERE id = $1`, [
        message.externalMessageId,
      ]);
      const marked = await store.markProcessed(transaction, message);
      await (marked === undefined || dice < 0.25 ? transaction.rollback() : transaction.commit());
      if (dice < 0.25) await store.release([message]);
    }
  }

  const handlers = types.flatMap((type) => stores.slice(0, 2).map((store) => handling(store, type)));
  await Promise.all([ingesting(), ingesting()]);
  arriving = false;
  await Promise.all(handlers);
  await db.pool.query('DROP TRIGGER dawdle ON inbox_messages');

  const [left] = await db.rows(
    `SELECT (SELECT count(*)::int FROM inbox_messages WHERE state <> 2) AS messages, (SELECT count(*)::int FROM inbox_keys) AS keys`,
  );
  expect(left).toEqual({ messages: 0, keys: 0 });
  const [done] = await db.rows(
    `SELECT count(*)::int AS effects, count(DISTINCT id)::int AS messages FROM effects`,
  );
  expect(done).toEqual({ effects: made, messages: made });
  // No two of a key overlapped, and each key went in the order of arrival.
  const overlaps = await db.rows(
    `SELECT a.id FROM effects a JOIN effects b ON a.key = b.key AND a.id <> b.id AND a.beginning < b.beginning AND b.beginning < a.ending`,
  );
  expect(overlaps).toEqual([]);
}, 60_000);

test('one message claimed twice, since its lease had run out, takes effect once', async () => {
  const { store } = db;
  await store.ingest([inboxRow()]);
  const first = (await store.claim(claimRequest({ leaseMs: 30 }))).messages[0] as ClaimedInboxMessage;
  await new Promise((resolve) => setTimeout(resolve, 50));
  const second = (await store.claim(claimRequest())).messages[0] as ClaimedInboxMessage;
  const both = await Promise.all(
    [first, second].map(async (message) => {
      const transaction = await store.begin(limits);
      await transaction.tx.query(`INSERT INTO effects (id) VALUES ($1)`, [message.lockToken]);
      const marked = await store.markProcessed(transaction, message);
      await (marked === undefined ? transaction.rollback() : transaction.commit());
      return marked !== undefined;
    }),
  );
  expect(both).toEqual([false, true]);
  expect(await db.rows('SELECT id FROM effects')).toEqual([{ id: second.lockToken }]);
});

test('a lease that runs out between mark and commit gives the message to nobody else', async () => {
  const { store } = db;
  await store.ingest([inboxRow(), inboxRow({ partitionKey: 'k' })]);
  const { messages } = await store.claim(claimRequest({ leaseMs: 150 }));
  const transactions = await Promise.all(messages.map(() => store.begin(limits)));
  for (const [n, message] of messages.entries()) {
    expect(await store.markProcessed(transactions[n] as (typeof transactions)[0], message)).toBeDefined();
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect((await store.claim(claimRequest())).messages).toEqual([]);
  await Promise.all(transactions.map((transaction) => transaction.commit()));
  expect((await store.claim(claimRequest())).messages).toEqual([]);
});

test('a function frozen inside its transaction loses its locks within the limit, and its late commit changes nothing', async () => {
  const { store } = db;
  await store.ingest([inboxRow({ partitionKey: 'k' })]);
  const frozen = (await store.claim(claimRequest({ leaseMs: 400 }))).messages[0] as ClaimedInboxMessage;
  const transaction = await store.begin({ ...limits, idleMs: 400 });
  await transaction.tx.query(`INSERT INTO effects (id) VALUES ('frozen')`);
  await store.markProcessed(transaction, frozen);
  // It holds the key's lock: an ingest of the key waits, but not for longer than the limit.
  const began = performance.now();
  await store.ingest([inboxRow({ partitionKey: 'k' })]);
  expect(performance.now() - began).toBeLessThan(3_000);
  await expect(transaction.commit()).rejects.toThrow();
  const again = await store.claim(claimRequest());
  expect(again.messages.map((message) => [message.externalMessageId, message.attempt])).toEqual([
    [frozen.externalMessageId, 2],
  ]);
  expect(await db.rows('SELECT * FROM effects')).toEqual([]);
});

test('a second consumer is refused on a table with the seed’s unique index, and the default one is not', async () => {
  await db.pool.query('CREATE UNIQUE INDEX seed_identity ON inbox_messages (source, external_message_id)');
  const store = postgresInboxStore(db.inboxDatabase, db.tables);
  await expect(store.ingest([inboxRow({ consumer: 'mail' })])).rejects.toThrow(ConfigurationError);
  await expect(store.claim(claimRequest({ consumer: 'mail' }))).rejects.toThrow('seed_identity');
  const row = inboxRow();
  expect((await store.ingest([row, row])).map((result) => result.added)).toEqual([true, false]);
  await db.pool.query('DROP INDEX seed_identity');
  expect(await store.ingest([inboxRow({ consumer: 'mail' })])).toMatchObject([{ added: true }]);
});
