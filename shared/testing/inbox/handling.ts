import assert from 'node:assert/strict';
import { type CaseOf, LONG_MS, SHORT_MS, sleep, until } from '../case.ts';
import { only } from '../outbox/harness.ts';
import {
  begin,
  claim,
  externalIds,
  fail,
  handle,
  type InboxHarness,
  inboxRow,
  ingestNew,
} from './harness.ts';

/** A handler's transaction and outcomes: the effect and the Processed mark together, each write fenced. */
export const handling: readonly CaseOf<InboxHarness>[] = [
  {
    promise: 2,
    name: 'a handler’s writes and its Processed mark commit together',
    async body(harness) {
      const { store, inspect, effects } = harness;
      const row = inboxRow();
      await ingestNew(store, [row]);
      await handle(harness, only((await claim(store)).messages));
      const done = await inspect(row);
      assert.equal(done?.state, 2);
      assert.equal(done.ended, true);
      assert.deepEqual(await effects(), [row.externalMessageId]);
      assert.deepEqual((await claim(store)).messages, []);
    },
  },
  {
    promise: 2,
    name: 'a transaction that rolls back leaves neither the writes nor the mark',
    async body({ store, write, inspect, effects }) {
      const [row, other] = [inboxRow(), inboxRow()];
      await ingestNew(store, [row, other]);
      const { messages } = await claim(store);
      for (const [n, message] of messages.entries()) {
        const transaction = await begin(store);
        await write(transaction.tx, 'never');
        assert.ok(await store.markProcessed(transaction, message));
        if (n === 0) await transaction.rollback();
        else await transaction.destroy();
      }
      assert.deepEqual(await effects(), []);
      const given = await until('both are given back', async () => {
        const { settled } = await store.release(messages);
        return settled.length > 0 && settled;
      });
      assert.equal(given.length, 2, 'they were still claimed');
      assert.equal((await inspect(row))?.state, 0);
    },
  },
  {
    promise: 5,
    name: 'a Processed mark after the lease has run out is refused, although nobody else has the message',
    async body({ store, inspect, write, effects }) {
      const row = inboxRow();
      await ingestNew(store, [row]);
      const message = only((await claim(store, { leaseMs: SHORT_MS })).messages);
      await sleep(SHORT_MS + 30);
      const transaction = await begin(store);
      await write(transaction.tx, 'late');
      assert.equal(await store.markProcessed(transaction, message), undefined);
      await transaction.rollback();
      assert.deepEqual(await effects(), []);
      assert.equal((await inspect(row))?.state, 1);
    },
  },
  {
    promise: 5,
    name: 'a late Processed mark does not overwrite what another decided',
    async body(harness) {
      const { store, another, inspect } = harness;
      const rows = [inboxRow(), inboxRow({ partitionKey: 'k' })];
      for (const row of rows) {
        await ingestNew(store, [row]);
        const old = only((await claim(store, { leaseMs: SHORT_MS })).messages);
        const mine = await until('the lease runs out', async () => (await claim(another)).messages[0]);
        const during = await begin(store);
        assert.equal(await store.markProcessed(during, old), undefined, 'another has it');
        await during.rollback();
        await fail(another, mine, undefined);
        const after = await begin(store);
        assert.equal(await store.markProcessed(after, old), undefined, 'it is Failed');
        await after.rollback();
        assert.equal((await inspect(row))?.state, 3);
      }
    },
  },
  {
    promise: 2,
    name: 'a message is marked Processed once',
    async body(harness) {
      const { store } = harness;
      await ingestNew(store, [inboxRow()]);
      const message = only((await claim(store)).messages);
      await handle(harness, message);
      const transaction = await begin(store);
      assert.equal(await store.markProcessed(transaction, message), undefined);
      await transaction.rollback();
      assert.deepEqual((await fail(store, message, 0)).lost, [message.rowId]);
      assert.deepEqual((await store.release([message])).lost, [message.rowId]);
    },
  },
  {
    promise: 5,
    name: 'a failure whose lease is lost changes nothing, and says so',
    async body({ store, another, inspect }) {
      const row = inboxRow();
      await ingestNew(store, [row]);
      const old = only((await claim(store, { leaseMs: SHORT_MS })).messages);
      await until('the lease runs out', async () => (await claim(another)).messages[0]);
      const before = await inspect(row);
      for (const retryInSeconds of [0, undefined]) {
        const result = await fail(store, old, retryInSeconds);
        assert.deepEqual([result.settled, result.ended, result.lost], [[], [], [old.rowId]]);
      }
      assert.deepEqual(await inspect(row), before);
    },
  },
  {
    promise: 4,
    name: 'a message whose transaction is about to commit is not handed to another, nor waited for',
    async body(harness) {
      const { store, another, inspect, write, effects } = harness;
      const row = inboxRow();
      await ingestNew(store, [row]);
      const { transaction, leaseMs } = await until('a message is marked within its lease', async () => {
        const leaseMs = 500;
        const message = (await claim(store, { leaseMs })).messages[0];
        if (!message) return undefined;
        const transaction = await begin(store);
        await write(transaction.tx, 'done');
        if (await store.markProcessed(transaction, message)) return { transaction, leaseMs };
        await transaction.rollback();
        return undefined;
      });
      await sleep(leaseMs + 30);
      const began = performance.now();
      assert.deepEqual((await claim(another)).messages, []);
      assert.ok(performance.now() - began < 5_000, 'a claim waits for nobody');
      await transaction.commit();
      assert.equal((await inspect(row))?.state, 2);
      assert.deepEqual(await effects(), ['done']);
    },
  },
  {
    promise: 7,
    name: 'a failed message waits its time, and comes back as the next attempt',
    async body({ store, inspect }) {
      const row = inboxRow();
      await ingestNew(store, [row]);
      const message = only((await claim(store)).messages);
      const result = await fail(store, message, 3600);
      assert.deepEqual([result.settled, result.ended, result.lost], [[message.rowId], [], []]);
      const waiting = await inspect(row);
      assert.equal(waiting?.state, 0);
      assert.equal(waiting.lastError, 'it threw');
      assert.ok((waiting.waitsSeconds ?? 0) > 3500 && (waiting.waitsSeconds ?? 0) <= 3600);
      assert.deepEqual((await claim(store)).messages, []);
      const soon = inboxRow();
      await ingestNew(store, [soon]);
      await fail(store, only((await claim(store)).messages), 0.1);
      const again = await until('it comes back', async () => (await claim(store)).messages[0]);
      assert.equal(again.externalMessageId, soon.externalMessageId);
      assert.equal(again.attempt, 2);
    },
  },
  {
    promise: 7,
    name: 'retries used up end in Failed: max_retries retries after the first attempt, and no more',
    async body({ store, inspect }) {
      const row = inboxRow({ maxRetries: 2 });
      const once = inboxRow({ maxRetries: 0 });
      await ingestNew(store, [row, once]);
      const attempts: number[] = [];
      const ended: string[] = [];
      await until('both have ended', async () => {
        for (const message of (await claim(store)).messages) {
          attempts.push(message.attempt);
          ended.push(...(await fail(store, message, 0)).ended);
        }
        return ended.length === 2;
      });
      assert.deepEqual(attempts.sort(), [1, 1, 2, 3]);
      for (const identity of [row, once]) {
        const end = await inspect(identity);
        assert.equal(end?.state, 3);
        assert.equal(end.ended, true);
        assert.equal(end.lastError, 'it threw');
      }
      assert.deepEqual((await claim(store)).messages, []);
    },
  },
  {
    promise: 7,
    name: 'a rejected message is Failed at once, and a requeue gives it all its attempts again',
    async body(harness) {
      const { store, inspect, requeue } = harness;
      const row = inboxRow();
      await ingestNew(store, [row]);
      const message = only((await claim(store)).messages);
      const result = await fail(store, message, undefined);
      assert.deepEqual([result.settled, result.ended], [[message.rowId], [message.rowId]]);
      assert.equal((await inspect(row))?.state, 3);
      assert.deepEqual((await claim(store)).messages, []);
      await requeue(row);
      const again = only((await claim(store)).messages);
      assert.equal(again.attempt, 1);
      await handle(harness, again);
      assert.equal((await inspect(row))?.state, 2);
    },
  },
  {
    promise: 7,
    name: 'many failures at once, of all kinds, are each written',
    async body({ store, inspect }) {
      const rows = [inboxRow(), inboxRow({ partitionKey: 'k' }), inboxRow(), inboxRow({ partitionKey: 'l' })];
      await ingestNew(store, rows);
      const { messages } = await claim(store);
      const reason = `before \u0000 and \ud800 after ${'x'.repeat(20_000)}`;
      const result = await store.markFailed(
        messages.map((message, n) => ({ message, reason, retryInSeconds: n < 2 ? 3600 : undefined })),
        { onFailedKey: 'block' },
      );
      assert.equal(result.settled.length, 4);
      assert.equal(result.ended.length, 2);
      for (const row of rows) {
        const text = (await inspect(row))?.lastError ?? '';
        assert.match(text, /^before .* and .* after x/su);
        assert.ok(
          !text.includes('\u0000') && text.isWellFormed() && text.length <= 4000,
          'sanitised and cut',
        );
      }
    },
  },
  {
    promise: 7,
    name: 'a connection that is lost is no outage: the database answers elsewhere',
    async body({ store, write, effects }) {
      const transaction = await begin(store);
      await write(transaction.tx, 'never');
      await transaction.destroy();
      assert.equal(await store.reachable(), true);
      assert.deepEqual(await effects(), []);
    },
  },
];

/** Only where the server ends a session that leaves its transaction idle. */
export const idling: readonly CaseOf<InboxHarness>[] = [
  {
    promise: 4,
    name: 'a transaction left idle beyond its limit cannot commit, and what it held is free',
    async body(harness) {
      const { store, write, effects, inspect } = harness;
      const row = inboxRow();
      await ingestNew(store, [row]);
      const message = only((await claim(store)).messages);
      const frozen = await store.begin({ idleMs: 100, lockMs: LONG_MS, statementMs: LONG_MS });
      await write(frozen.tx, 'frozen');
      assert.ok(await store.markProcessed(frozen, message));
      await sleep(400);
      await assert.rejects(frozen.commit());
      await frozen.destroy();
      assert.deepEqual(await effects(), []);
      assert.equal((await inspect(row))?.state, 1);
      await handle(harness, message);
      assert.deepEqual(await effects(), externalIds([row]));
    },
  },
];
