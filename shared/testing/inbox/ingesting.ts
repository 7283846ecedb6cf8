import assert from 'node:assert/strict';
import { type CaseOf, SHORT_MS, until } from '../case.ts';
import { only, sorted } from '../outbox/harness.ts';
import { claim, externalIds, fail, handle, type InboxHarness, inboxRow, ingestNew } from './harness.ts';

/** What becomes of a message on its way in: stored once per identity, compared exactly, text as it was given. */
export const ingesting: readonly CaseOf<InboxHarness>[] = [
  {
    promise: 2,
    name: 'a batch is stored, and answered in its order',
    async body({ store }) {
      const rows = Array.from({ length: 30 }, () => inboxRow());
      await ingestNew(store, rows.slice(10, 20));
      const results = await store.ingest(rows);
      assert.deepEqual(
        results.map(({ added }) => added),
        rows.map((_, n) => n < 10 || n >= 20),
      );
      assert.equal((await claim(store)).messages.length, 30);
      assert.deepEqual(await store.ingest([]), []);
    },
  },
  {
    promise: 2,
    name: 'a message that is twice in one batch is stored once',
    async body({ store }) {
      const [row, other] = [inboxRow(), inboxRow()];
      const results = await store.ingest([row, other, row, { ...row, payload: '{"other":1}' }]);
      assert.deepEqual(
        results.map(({ added }) => added),
        [true, true, false, false],
      );
      assert.deepEqual(
        results.map(({ differs }) => differs),
        [false, false, false, true],
      );
      const { messages } = await claim(store);
      assert.deepEqual(sorted(externalIds(messages)), sorted(externalIds([row, other])));
      assert.equal(messages.find((m) => m.externalMessageId === row.externalMessageId)?.payload, row.payload);
    },
  },
  {
    promise: 2,
    name: 'a message that is there already is a duplicate, whatever its state, and is not touched',
    async body(harness) {
      const { store, inspect } = harness;
      const [pending, processed, failed] = [inboxRow(), inboxRow(), inboxRow()];
      await ingestNew(store, [processed, failed]);
      for (const message of (await claim(store)).messages) {
        if (message.externalMessageId === failed.externalMessageId) await fail(store, message, undefined);
        else await handle(harness, message);
      }
      await ingestNew(store, [pending]);
      const rows = [pending, processed, failed];
      const before = await Promise.all(rows.map(inspect));
      assert.deepEqual(
        before.map((row) => row?.state),
        [0, 2, 3],
      );
      const results = await store.ingest([pending, { ...processed, payload: '"other"' }, failed]);
      assert.deepEqual(
        results.map(({ added, differs }) => [added, differs]),
        [
          [false, false],
          [false, true],
          [false, false],
        ],
      );
      assert.deepEqual(await Promise.all(rows.map(inspect)), before);
    },
  },
  {
    promise: 2,
    name: 'ids are compared exactly: case, trailing spaces and composition make another message',
    async body({ store }) {
      const ids = ['abc', 'ABC', 'Abc', 'abc ', ' abc', 'abc\t', '\u00e9', 'e\u0301', 'ß', 'ss', '0', '00'];
      const rows = ids.map((externalMessageId) => inboxRow({ externalMessageId }));
      await ingestNew(store, rows);
      assert.deepEqual(sorted(externalIds((await claim(store)).messages)), sorted(ids));
    },
  },
  {
    promise: 2,
    name: 'sources are compared exactly, and the same id of another source is another message',
    async body({ store }) {
      const row = inboxRow();
      await ingestNew(store, [row, { ...row, source: 'Shop' }, { ...row, source: 'shop ' }]);
      assert.equal(only(await store.ingest([{ ...row, source: 'Shop' }])).added, false);
      assert.equal((await claim(store)).messages.length, 3);
    },
  },
  {
    promise: 2,
    name: 'consumers are apart: each has its own copy of one event',
    async body({ store }) {
      const row = inboxRow();
      await ingestNew(store, [row, { ...row, consumer: 'invoicing' }, { ...row, consumer: 'emails' }]);
      assert.equal(only(await store.ingest([{ ...row, consumer: 'emails' }])).added, false);
      for (const consumer of ['', 'invoicing', 'emails']) {
        const message = only((await claim(store, { consumer })).messages);
        assert.equal(message.consumer, consumer);
      }
    },
  },
  {
    promise: 2,
    name: 'the same messages from several ingests at once, in any order, are stored once, and none of them fails',
    async body({ store, another }) {
      const rows = Array.from({ length: 12 }, (_, n) =>
        inboxRow({ partitionKey: n % 3 ? `k${n % 4}` : null }),
      );
      const batches = Array.from({ length: 6 }, (_, n) => (n % 2 ? rows.toReversed() : rows));
      const results = await Promise.all(batches.map((batch, n) => (n % 2 ? store : another).ingest(batch)));
      const added = results.flat().filter((result) => result.added);
      assert.equal(added.length, rows.length, 'each is added by one of them');
    },
  },
  {
    promise: 1,
    name: 'what was ingested is what is claimed: text, headers, key and counts',
    async body({ store }) {
      const row = inboxRow({
        payload: '{"n":12345678901234567890,"x":1.0,"text":"Grüße 🚚 \\u0000 \\"q\\" $1 \'s\' \\\\"}',
        headers: { tenant: 'a b', 'x-quote': '"\\{}' },
        correlationId: 'c-1 ',
        partitionKey: 'Kunde/ß 1 ',
        maxRetries: 7,
      });
      const plain = inboxRow({ payload: 'no json at all' });
      await ingestNew(store, [row, plain]);
      const { messages } = await claim(store);
      const message = messages.find((m) => m.externalMessageId === row.externalMessageId);
      assert.ok(message);
      assert.deepEqual(
        { ...message, headers: { ...message.headers }, rowId: '', lockToken: '', createdAt: '' },
        {
          rowId: '',
          lockToken: '',
          createdAt: '',
          consumer: '',
          source: row.source,
          externalMessageId: row.externalMessageId,
          messageType: row.messageType,
          payload: row.payload,
          headers: row.headers,
          correlationId: row.correlationId,
          partitionKey: row.partitionKey,
          attempt: 1,
          maxRetries: 7,
        },
      );
      assert.match(message.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/);
      const other = messages.find((m) => m.externalMessageId === plain.externalMessageId);
      assert.equal(other?.payload, 'no json at all');
      assert.deepEqual({ ...other.headers }, {});
    },
  },
  {
    promise: 7,
    name: 'what could not be understood is stored as Failed, with its reason, and is not handled',
    async body(harness) {
      const { store, inspect, requeue } = harness;
      const row = inboxRow({ failedReason: 'the body is no envelope', payload: '<xml/>' });
      await ingestNew(store, [row]);
      const failed = await inspect(row);
      assert.equal(failed?.state, 3);
      assert.equal(failed.lastError, 'the body is no envelope');
      assert.equal(failed.ended, true);
      assert.deepEqual((await claim(store)).messages, []);
      await requeue(row);
      const message = only((await claim(store)).messages);
      assert.equal(message.attempt, 1);
      await handle(harness, message);
    },
  },
  {
    promise: 7,
    name: "another program's row is claimed at once, however fast its clock is, and keeps its own retries",
    async body(harness) {
      const { store, insertForeignRow, inspect } = harness;
      const row = inboxRow({ maxRetries: 3 });
      await insertForeignRow({ ...row, state: 0, createdInSeconds: 300 });
      const message = only((await claim(store)).messages);
      assert.equal(message.externalMessageId, row.externalMessageId);
      assert.equal(message.maxRetries, 3);
      await handle(harness, message);
      assert.equal((await inspect(row))?.state, 2);
      assert.equal(only(await store.ingest([row])).added, false, 'and is a duplicate for ingest');
    },
  },
  {
    promise: 5,
    name: "another program's running claim is respected, and taken over when it has run out",
    async body({ store, insertForeignRow }) {
      const [running, short] = [inboxRow(), inboxRow()];
      await insertForeignRow({ ...running, state: 1, lockedForMs: 60_000 });
      await insertForeignRow({ ...short, state: 1, lockedForMs: SHORT_MS });
      const { messages, alone } = await until('the claim runs out', async () => {
        const result = await claim(store);
        return result.messages.length > 0 && result;
      });
      assert.deepEqual(externalIds(messages), [short.externalMessageId]);
      assert.equal(alone, true);
    },
  },
];
