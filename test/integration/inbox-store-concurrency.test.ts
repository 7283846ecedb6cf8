import { afterAll, beforeEach, expect, test } from 'vitest';
import { ConfigurationError } from '../../shared/message/errors.ts';
import type { ClaimedInboxMessage, InboxStore } from '../../shared/store/inbox-store.ts';
import { engine } from '../support/engine/engine.ts';
import type { TestTx } from '../support/engine/test-engine.ts';
import { not } from '../support/engine/values.ts';
import { claimRequest, inboxRow, limits } from '../support/inbox-rows.ts';
import { until } from '../support/until.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
beforeEach(() => db.clear('effects', 'inbox', 'keys'));

const store = db.inbox;
const types = ['order.placed', 'order.cancelled'];

/** Many ingest and handle a few keys at once, with failures, releases and lost leases. Nothing may be left, or done twice. */
test('hammered from all sides, no message is stranded, doubled, or beside another of its key', async () => {
  const stores = [store, db.instance({ max: 8 }).inbox];
  await dawdleInIngest();
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
      await store.ingest(chance() < 0.2 ? [...rows, ...rows] : rows);
      // Time for the handlers to drain the keys, so that the last message of a key is settled again and again.
      await new Promise((resolve) => setTimeout(resolve, chance() * 25));
    }
  }

  async function handling(own: InboxStore<TestTx>, messageType: string): Promise<void> {
    for (;;) {
      const { messages } = await own.claim(claimRequest({ messageType, limit: 2, leaseMs: 2_000 }));
      for (const message of messages) await handle(own, message);
      if (messages.length > 0 || arriving) continue;
      if ((await db.count('inbox', { processed_at_utc: null })) === 0) return;
      if ((await db.count('keys')) === 0) return;
    }
  }

  async function handle(own: InboxStore<TestTx>, message: ClaimedInboxMessage): Promise<void> {
    const dice = chance();
    if (dice < 0.1) {
      await own.release([message]);
    } else if (dice < 0.2) {
      await own.markFailed([{ message, reason: 'no', retryInSeconds: 0 }], { onFailedKey: 'block' });
    } else {
      const transaction = await own.begin(limits);
      // Places are given out when a row is written, so they tell what ran beside what.
      for (const moment of ['begins', 'ends']) {
        const effect = `${message.partitionKey} ${message.externalMessageId} ${moment}`;
        await db.effects.write(transaction.tx, effect);
      }
      const marked = await own.markProcessed(transaction, message);
      await (marked === undefined || dice < 0.25 ? transaction.rollback() : transaction.commit());
      if (dice < 0.25) await own.release([message]);
    }
  }

  const handlers = types.flatMap((type) => stores.map((own) => handling(own, type)));
  await Promise.all([ingesting(), ingesting()]);
  arriving = false;
  await Promise.all(handlers);
  await dawdleNoMore();

  expect([await db.count('inbox', { state: not(2) }), await db.count('keys')]).toEqual([0, 0]);
  const effects = await db.effects.all();
  expect([effects.length, new Set(effects).size]).toEqual([2 * made, 2 * made]);
  // No two of a key overlapped: of each key one begins and ends before the next begins.
  const perKey = Map.groupBy(effects, (effect) => effect.split(' ')[0]);
  for (const own of perKey.values()) {
    const begun = own.filter((effect) => effect.endsWith('begins'));
    expect(own).toEqual(begun.flatMap((effect) => [effect, effect.replace('begins', 'ends')]));
  }
}, 60_000);

/**
 * Ingest takes a little longer after it has inserted its rows than it would: that is the moment in which a careless settle
 * would lose a key. On PostgreSQL that is just before its commit, on SQL Server before it locks the keys.
 */
async function dawdleInIngest(): Promise<void> {
  const { inbox } = db.tables;
  await db.sql({
    postgres: `
      CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.006); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON ${inbox} DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION dawdle()`,
    sqlserver: `
      CREATE TRIGGER dbo.dawdle ON ${inbox} AFTER INSERT AS
      BEGIN
        DECLARE @until DATETIME2 = DATEADD(millisecond, 6, SYSUTCDATETIME()), @turns BIGINT = 0;
        WHILE SYSUTCDATETIME() < @until SET @turns = @turns + 1;
      END`,
  });
}

async function dawdleNoMore(): Promise<void> {
  await db.sql({
    postgres: `DROP TRIGGER dawdle ON ${db.tables.inbox}`,
    sqlserver: 'DROP TRIGGER dbo.dawdle',
  });
}

test('one message claimed twice, since its lease had run out, takes effect once', async () => {
  await store.ingest([inboxRow()]);
  const first = (await store.claim(claimRequest({ leaseMs: 30 }))).messages[0] as ClaimedInboxMessage;
  await new Promise((resolve) => setTimeout(resolve, 50));
  const second = (await store.claim(claimRequest())).messages[0] as ClaimedInboxMessage;
  const both = await Promise.all(
    [first, second].map(async (message) => {
      const transaction = await store.begin(limits);
      await db.effects.write(transaction.tx, message.lockToken);
      const marked = await store.markProcessed(transaction, message);
      await (marked === undefined ? transaction.rollback() : transaction.commit());
      return marked !== undefined;
    }),
  );
  expect(both).toEqual([false, true]);
  expect(await db.effects.all()).toEqual([second.lockToken]);
});

test('a lease that runs out between mark and commit gives the message to nobody else', async () => {
  await store.ingest([inboxRow(), inboxRow({ partitionKey: 'k' })]);
  const { messages } = await store.claim(claimRequest({ leaseMs: 2_000 }));
  const transactions = await Promise.all(messages.map(() => store.begin(limits)));
  for (const [n, message] of messages.entries()) {
    expect(await store.markProcessed(transactions[n] as (typeof transactions)[0], message)).toBeDefined();
  }
  await new Promise((resolve) => setTimeout(resolve, 2_050));
  expect((await store.claim(claimRequest())).messages).toEqual([]);
  await Promise.all(transactions.map((transaction) => transaction.commit()));
  expect((await store.claim(claimRequest())).messages).toEqual([]);
});

const locks = engine.endsIdleTransactions
  ? 'loses its locks within the limit'
  : 'keeps its locks until its session ends';
test(`a function frozen inside its transaction ${locks}, and its late commit changes nothing`, async () => {
  await store.ingest([inboxRow({ partitionKey: 'k' })]);
  const frozen = (await store.claim(claimRequest({ leaseMs: 2_000 }))).messages[0] as ClaimedInboxMessage;
  const transaction = await store.begin({ ...limits, idleMs: 400 });
  await db.effects.write(transaction.tx, 'frozen');
  await store.markProcessed(transaction, frozen);
  // It holds the key's lock: an ingest of the key waits, but not for longer than the limit.
  const began = performance.now();
  const arriving = store.ingest([inboxRow({ partitionKey: 'k' })]);
  await until(
    () => db.waiting(),
    (count) => count === 1,
  );
  if (!engine.endsIdleTransactions) await db.endSession(transaction.tx);
  await arriving;
  expect(performance.now() - began).toBeLessThan(limits.lockMs);
  await expect(transaction.commit()).rejects.toThrow();
  const again = await until(
    () => store.claim(claimRequest()),
    ({ messages }) => messages.length > 0,
  );
  expect(again.messages.map((message) => [message.externalMessageId, message.attempt])).toEqual([
    [frozen.externalMessageId, 2],
  ]);
  expect(await db.effects.all()).toEqual([]);
});

test('a second consumer is refused on a table with the seed’s unique index, and the default one is not', async () => {
  const { inbox } = db.tables;
  await db.sql({
    postgres: `CREATE UNIQUE INDEX seed_identity ON ${inbox} (source, external_message_id)`,
    sqlserver: `CREATE UNIQUE INDEX seed_identity ON ${inbox} ([Source], [ExternalMessageId])`,
  });
  // A store that has not seen the table without the index.
  const store = db.instance().inbox;
  await expect(store.ingest([inboxRow({ consumer: 'mail' })])).rejects.toThrow(ConfigurationError);
  await expect(store.claim(claimRequest({ consumer: 'mail' }))).rejects.toThrow('seed_identity');
  const row = inboxRow();
  expect((await store.ingest([row, row])).map((result) => result.added)).toEqual([true, false]);
  await db.sql({ postgres: 'DROP INDEX seed_identity', sqlserver: `DROP INDEX seed_identity ON ${inbox}` });
  expect(await store.ingest([inboxRow({ consumer: 'mail' })])).toMatchObject([{ added: true }]);
});
