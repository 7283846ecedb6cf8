import assert from 'node:assert/strict';
import type { CaseOf } from '../case.ts';
import {
  type ForeignOutboxRow,
  ids,
  KEEP,
  LANE,
  mustLease,
  type OutboxHarness,
  outboxRow,
  outcome,
  readAll,
  sorted,
} from './harness.ts';

const MOST = 2_147_483_647;

/** What other programs may have left in a row, and what it must not cost the rows beside it. */
export const foreign: readonly CaseOf<OutboxHarness>[] = [
  {
    promise: 7,
    name: 'a row whose retries are counted to the column’s end is settled like the others of its batch',
    async body({ store, insertForeignRow, inspect }) {
      const row = foreignRow({ maxRetries: MOST, retryCount: MOST });
      const other = outboxRow();
      await insertForeignRow(row);
      await store.add([other]);
      const lease = await mustLease(store);
      const failed = (await readAll(store, lease)).map((message) => ({
        message,
        reason: 'refused',
        retryInSeconds: 3600,
      }));
      const result = await store.settle(lease, outcome({ failed }), KEEP);
      assert.deepEqual(sorted(result.settled), sorted([row.id, other.id]));
      assert.equal((await inspect(other.id))?.retryCount, 1);
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
      const read = await readAll(store, await mustLease(store));
      assert.deepEqual(sorted(ids(read)), sorted(ids(rows)));
      const headersOf = (n: number) =>
        Object.entries(read.find(({ id }) => id === rows[n]?.id)?.headers ?? {});
      for (const n of [0, 1, 2, 3]) assert.deepEqual(headersOf(n), []);
      assert.equal(headersOf(4)[0]?.[1].length, 6000);
      assert.deepEqual(sorted(headersOf(5).map(String)), ['__proto__,z', 'n,1']);
    },
  },
];

function foreignRow(fields: Partial<ForeignOutboxRow>): ForeignOutboxRow {
  const { id } = outboxRow();
  return { id, destination: LANE, messageType: 't', payload: '{}', maxRetries: 5, state: 0, ...fields };
}
