import assert from 'node:assert/strict';
import { type CaseOf, LONG_MS, SHORT_MS, sleep, until } from '../case.ts';
import { only, sorted } from '../outbox/harness.ts';
import {
  claim,
  externalIds,
  fail,
  handle,
  handleIfHeld,
  type InboxHarness,
  inboxRow,
  ingestNew,
  TYPE,
} from './harness.ts';

/** Who handles what: claims, their attempts, their end, and their return. */
export const claiming: readonly CaseOf<InboxHarness>[] = [
  {
    promise: 7,
    name: 'a claim brings messages of its type and consumer only',
    async body({ store }) {
      const placed = inboxRow();
      const others = [
        inboxRow({ messageType: 'Order.placed' }),
        inboxRow({ messageType: 'order.cancelled' }),
        inboxRow({ messageType: 'order.cancelled', partitionKey: 'k' }),
        inboxRow({ consumer: 'emails' }),
        inboxRow({ consumer: 'emails', partitionKey: 'k' }),
      ];
      await ingestNew(store, [...others, placed]);
      assert.deepEqual(externalIds((await claim(store)).messages), [placed.externalMessageId]);
      const cancelled = (await claim(store, { messageType: 'order.cancelled' })).messages;
      assert.equal(cancelled.length, 2);
      assert.deepEqual(await claim(store, { messageType: 'order.shipped' }), {
        messages: [],
        alone: false,
        ended: 0,
        nextTypes: [],
      });
    },
  },
  {
    promise: 7,
    name: 'a claim of one source brings no other’s messages, with a key or without',
    async body({ store }) {
      const sources = ['shop', 'Shop', 'outlet'];
      const rows = [null, 'k'].flatMap((partitionKey) =>
        sources.map((source) => inboxRow({ source, partitionKey })),
      );
      await ingestNew(store, rows);
      const of = (source: string) => externalIds(rows.filter((row) => row.source === source));
      for (const source of ['outlet', 'Shop']) {
        const { messages } = await claim(store, { source });
        assert.deepEqual(sorted(externalIds(messages)), sorted(of(source)));
        assert.deepEqual((await claim(store, { source })).messages, []);
      }
      assert.deepEqual(sorted(externalIds((await claim(store)).messages)), sorted(of('shop')));
    },
  },
  {
    promise: 7,
    name: 'a claim is bounded by count and by bytes as stored, but brings at least one message',
    async body({ store }) {
      // Two bytes each in UTF-8: counted as characters, four would fit.
      const rows = Array.from({ length: 6 }, () => inboxRow({ payload: 'ß'.repeat(500) }));
      await ingestNew(store, rows);
      assert.deepEqual(
        externalIds((await claim(store, { maxBytes: 2500 })).messages),
        externalIds(rows.slice(0, 2)),
      );
      assert.deepEqual(
        externalIds((await claim(store, { maxBytes: 10 })).messages),
        externalIds(rows.slice(2, 3)),
      );
      assert.equal((await claim(store, { limit: 2 })).messages.length, 2);
      assert.equal((await claim(store)).messages.length, 1);
    },
  },
  {
    promise: 7,
    name: 'messages without key are claimed in order of arrival',
    async body({ store }) {
      const rows = Array.from({ length: 20 }, () => inboxRow());
      for (const row of rows) await ingestNew(store, [row]);
      const claimed: string[] = [];
      while (claimed.length < 20) claimed.push(...externalIds((await claim(store, { limit: 5 })).messages));
      assert.deepEqual(claimed, externalIds(rows));
    },
  },
  {
    promise: 5,
    name: 'claims at the same moment never share a message, and each has a token of its own',
    async body({ store, another }) {
      const rows = Array.from({ length: 60 }, (_, n) => inboxRow({ partitionKey: n % 2 ? `k${n}` : null }));
      await ingestNew(store, rows);
      const claims = await Promise.all(
        Array.from({ length: 8 }, (_, n) => claim(n % 2 ? store : another, { limit: 10 })),
      );
      const messages = claims.flatMap((result) => result.messages);
      assert.equal(new Set(externalIds(messages)).size, messages.length, 'a message was claimed twice');
      assert.equal(new Set(messages.map(({ lockToken }) => lockToken)).size, messages.length);
    },
  },
  {
    promise: 4,
    name: 'an attempt is counted by its claim: a lost lease comes back as the next attempt',
    async body(harness) {
      const { store, another, inspect } = harness;
      const row = inboxRow();
      await ingestNew(store, [row]);
      assert.equal(only((await claim(store, { leaseMs: SHORT_MS })).messages).attempt, 1);
      const again = await until('the lease runs out', async () => (await claim(another)).messages[0]);
      assert.equal(again.attempt, 2);
      await handle(harness, again);
      assert.equal((await inspect(row))?.state, 2);
    },
  },
  {
    promise: 4,
    name: 'messages whose lease ran out are claimed alone, one by one, and only then the others together',
    async body(harness) {
      const { store } = harness;
      const lost = Array.from({ length: 3 }, () => inboxRow());
      await ingestNew(store, lost);
      assert.equal((await claim(store, { leaseMs: SHORT_MS })).messages.length, 3);
      await sleep(SHORT_MS + 30);
      const fresh = Array.from({ length: 3 }, () => inboxRow());
      await ingestNew(store, fresh);
      const alone: string[] = [];
      for (let n = 0; n < 3; n++) {
        const result = await claim(store);
        assert.equal(result.alone, true);
        const message = only(result.messages);
        alone.push(message.externalMessageId);
        await handle(harness, message);
      }
      assert.deepEqual(sorted(alone), sorted(externalIds(lost)));
      const rest = await claim(store);
      assert.equal(rest.alone, false);
      assert.deepEqual(sorted(externalIds(rest.messages)), sorted(externalIds(fresh)));
    },
  },
  {
    promise: 7,
    name: 'a message that kills its function each time ends in Failed after its retries, its batch-mates go free',
    async body(harness) {
      const { store, inspect } = harness;
      const killer = inboxRow({ maxRetries: 2 });
      const mates = Array.from({ length: 3 }, () => inboxRow({ maxRetries: 100 }));
      await ingestNew(store, [...mates.slice(0, 1), killer, ...mates.slice(1)]);
      const attempts: number[] = [];
      let ended = 0;
      const end = performance.now() + 15_000;
      while ((await inspect(killer))?.state !== 3) {
        assert.ok(performance.now() < end, `it doesn't end: attempts ${attempts}`);
        const result = await claim(store, { leaseMs: 200 });
        ended += result.ended;
        const killed = result.messages.find((m) => m.externalMessageId === killer.externalMessageId);
        if (killed) {
          // The function is gone, with all that it had claimed.
          attempts.push(killed.attempt);
          await sleep(210);
        } else {
          for (const message of result.messages) await handleIfHeld(harness, message);
          await sleep(20);
        }
      }
      assert.equal(ended, 1);
      assert.deepEqual(attempts, [1, 2, 3]);
      assert.match((await inspect(killer))?.lastError ?? '', /lease/);
      await until('its batch-mates are handled', async () => {
        for (const message of (await claim(store)).messages) await handle(harness, message);
        return (await harness.effects()).length >= 3;
      });
      assert.deepEqual(sorted([...(await harness.effects())]), sorted(externalIds(mates)));
    },
  },
  {
    promise: 3,
    name: 'a message given back is due at once, and its attempt is not counted',
    async body({ store, another, inspect }) {
      const rows = [inboxRow(), inboxRow({ partitionKey: 'k' })];
      await ingestNew(store, rows);
      for (let round = 0; round < 3; round++) {
        const { messages } = await claim(round % 2 ? store : another);
        assert.deepEqual(
          messages.map(({ attempt }) => attempt),
          [1, 1],
        );
        const result = await store.release(messages);
        assert.deepEqual(sorted(result.settled), sorted(messages.map(({ rowId }) => rowId)));
        assert.deepEqual([result.ended, result.lost], [[], []]);
      }
      for (const row of rows) assert.equal((await inspect(row))?.state, 0);
    },
  },
  {
    promise: 5,
    name: 'a release whose lease is lost changes nothing, and says so',
    async body({ store, another }) {
      const row = inboxRow();
      await ingestNew(store, [row]);
      const { messages: old } = await claim(store, { leaseMs: SHORT_MS });
      await sleep(SHORT_MS + 30);
      assert.deepEqual((await store.release(old)).lost, [only(old).rowId], 'it has run out');
      const { messages } = await until('it is claimed again', async () => {
        const result = await claim(another);
        return result.messages.length > 0 && result;
      });
      const late = await store.release(old);
      assert.deepEqual([late.settled, late.lost], [[], [only(old).rowId]]);
      assert.deepEqual((await claim(store)).messages, [], 'the new holder’s claim stands');
      assert.equal(only(messages).attempt, 2);
    },
  },
  {
    promise: 7,
    name: 'a message type that a person paused is not claimed, until it is resumed',
    async body({ store, pause, resume }) {
      const rows = [inboxRow(), inboxRow({ partitionKey: 'k' })];
      await ingestNew(store, [...rows, inboxRow({ messageType: 'order.cancelled' })]);
      await pause('', TYPE);
      assert.deepEqual((await claim(store)).messages, []);
      assert.equal((await claim(store, { messageType: 'order.cancelled' })).messages.length, 1);
      await resume('', TYPE);
      assert.equal((await claim(store)).messages.length, 2);
    },
  },
  {
    promise: 7,
    name: 'the next due time is told, of waiting messages and of leases that may run out',
    async body({ store }) {
      const request = { consumer: '', messageType: TYPE };
      assert.equal(await store.secondsToNextDue(request), undefined);
      await ingestNew(store, [inboxRow(), inboxRow({ partitionKey: 'k' })]);
      const { messages } = await claim(store, { leaseMs: LONG_MS });
      const leased = await store.secondsToNextDue(request);
      assert.ok(
        leased !== undefined && leased > LONG_MS / 1000 - 20 && leased <= LONG_MS / 1000,
        `in ${leased} s`,
      );
      for (const message of messages) await fail(store, message, message.partitionKey === null ? 40 : 20);
      const waiting = await store.secondsToNextDue(request);
      assert.ok(waiting !== undefined && waiting > 5 && waiting <= 20, `in ${waiting} s`);
      assert.equal(await store.secondsToNextDue({ ...request, messageType: 'order.cancelled' }), undefined);
    },
  },
];
