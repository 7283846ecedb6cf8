import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { CaseOf } from '../case.ts';
import { sorted } from '../outbox/harness.ts';
import {
  claim,
  externalIds,
  type ForeignInboxRow,
  type InboxHarness,
  inboxRow,
  ingestNew,
  TYPE,
} from './harness.ts';

const MOST = 2_147_483_647;

/** What other programs may have left in a row, and what it must not cost the rows beside it. */
export const foreign: readonly CaseOf<InboxHarness>[] = [
  {
    promise: 7,
    name: 'a row whose retries are counted to the column’s end, or below zero, is claimed and settled like the others',
    async body({ store, insertForeignRow }) {
      const odd = [
        foreignRow({ retryCount: MOST, maxRetries: MOST }),
        foreignRow({ retryCount: MOST }),
        foreignRow({ retryCount: -MOST - 1, maxRetries: -1 }),
      ];
      for (const row of odd) await insertForeignRow(row);
      const other = inboxRow();
      await ingestNew(store, [other]);
      const rows = [...odd, other];
      const first = (await claim(store)).messages;
      assert.deepEqual(sorted(externalIds(first)), sorted(externalIds(rows)));
      assert.equal((await store.release(first)).settled.length, 4);
      const failures = (await claim(store)).messages.map((message) => ({
        message,
        reason: 'it threw',
        retryInSeconds: 3600,
      }));
      assert.equal((await store.markFailed(failures, { onFailedKey: 'block' })).settled.length, 4);
    },
  },
  {
    promise: 7,
    name: 'headers of any shape, nested however deep, are read as texts or not at all, and the batch with them',
    async body({ store, insertForeignRow }) {
      const deep = `{"a":${'['.repeat(3000)}${']'.repeat(3000)}}`;
      const shapes = ['[1, "a"]', '"text"', '12', 'null', deep, '{"__proto__": "z", "n": 1, "none": null}'];
      const rows = shapes.map((headersJson) => foreignRow({ headersJson }));
      for (const row of rows) await insertForeignRow(row);
      const { messages } = await claim(store);
      assert.deepEqual(sorted(externalIds(messages)), sorted(externalIds(rows)));
      const headersOf = (n: number) => {
        const { externalMessageId } = rows[n] as ForeignInboxRow;
        const found = messages.find((message) => message.externalMessageId === externalMessageId);
        return Object.entries(found?.headers ?? {});
      };
      for (const n of [0, 1, 2, 3]) assert.deepEqual(headersOf(n), []);
      assert.equal(headersOf(4)[0]?.[1].length, 6000);
      assert.deepEqual(sorted(headersOf(5).map(String)), ['__proto__,z', 'n,1']);
    },
  },
];

function foreignRow(fields: Partial<ForeignInboxRow>): ForeignInboxRow {
  return {
    source: 'shop',
    externalMessageId: randomUUID(),
    messageType: TYPE,
    payload: '{}',
    maxRetries: 5,
    state: 0,
    ...fields,
  };
}
