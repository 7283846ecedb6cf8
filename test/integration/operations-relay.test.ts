import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Deadline } from '../../shared/delivery/deadline.ts';
import { silent } from '../../shared/delivery/telemetry.ts';
import { runRelay } from '../../shared/outbox/relay.ts';
import { relayDefaults } from '../../shared/outbox/relay-options.ts';
import type { Publisher } from '../../shared/publish/publisher.ts';
import { postgresOutboxStore } from '../../shared/store/postgres/outbox-store.ts';
import {
  discardOutbox,
  releaseFollowers,
  requeueOutbox,
} from '../../shared/store/postgres/sql/operations-outbox.ts';
import { createOperations, failedColumns, type OperationsFixture } from '../support/operations.ts';

let t: OperationsFixture;
beforeAll(async () => {
  t = await createOperations();
});
afterAll(() => t.drop());
beforeEach(async () => {
  await t.pool.query('TRUNCATE outbox_messages, outbox_leases, outbox_lanes');
});

/** Takes everything, each call after so many milliseconds, and remembers the order. */
function publisher(sent: string[], ms = 0): Publisher<string> {
  return {
    limits: { entries: 10, callBytes: 1e6, ordered: true },
    prepare: ({ id }) => ({ entry: id, bytes: 10 }),
    send: async (entries) => {
      await new Promise((resolve) => setTimeout(resolve, ms));
      sent.push(...entries);
      return entries.map(() => ({ kind: 'published' }));
    },
    classify: (error) => ({ kind: 'failed', reason: String(error) }),
  };
}

async function relay(sent: string[], options: { ms?: number; signal?: AbortSignal } = {}): Promise<void> {
  await runRelay({
    store: postgresOutboxStore(t.pool),
    destinations: new Map([['orders', publisher(sent, options.ms) as Publisher]]),
    deadline: Deadline.in(25_000),
    signal: options.signal ?? new AbortController().signal,
    telemetry: silent,
    options: { ...relayDefaults, mode: options.signal ? 'continuous' : 'scheduled', pollMs: 50 },
  });
}

async function blockedKey(followers: number): Promise<{ head: string; rest: readonly string[] }> {
  const head = await t.row(failedColumns({ partition_key: 'k', held: true }));
  await t.pool.query(
    `INSERT INTO outbox_messages (id, destination, message_type, payload, created_at_utc, partition_key, held)
     SELECT gen_random_uuid(), 'orders', 'x', '{}', now(), 'k', true FROM generate_series(1, $1)`,
    [followers],
  );
  const rest = await t.rows('SELECT id FROM outbox_messages WHERE id <> $1 ORDER BY sequence', [head]);
  return { head, rest: rest.map(({ id }) => String(id)) };
}

describe('a key that a person has opened again', () => {
  it('is published to its end, in order, though not all its followers are let go at once', async () => {
    const sent: string[] = [];
    const requeued = await blockedKey(500);
    await t.ask({ command: 'requeue', ids: [requeued.head] });
    await relay(sent);
    expect(sent).toEqual([requeued.head, ...requeued.rest]);
    await t.pool.query('TRUNCATE outbox_messages');
    const discarded = await blockedKey(500);
    await t.ask({ command: 'discard', ids: [discarded.head], reason: 'x', by: 'Ada' });
    sent.length = 0;
    await relay(sent);
    expect(sent).toEqual(discarded.rest);
  });
});

describe('a lane that relays work on without a pause', () => {
  it('still lets a person decide: relays give their buckets back every few seconds', async () => {
    await t.pool.query(
      `INSERT INTO outbox_messages (id, destination, message_type, payload, created_at_utc)
       SELECT gen_random_uuid(), 'orders', 'x', '{}', now() FROM generate_series(1, 30000)`,
    );
    const ids = await Promise.all([1, 2, 3].map(() => t.row(failedColumns())));
    const stop = new AbortController();
    const relays = [1, 2].map(() => relay([], { ms: 20, signal: stop.signal }));
    await new Promise((resolve) => setTimeout(resolve, 500));
    const { changed } = await t.ask({ command: 'requeue', ids, waitSeconds: 20 });
    expect(changed).toHaveLength(3);
    expect(await t.rows('SELECT 1 FROM outbox_messages WHERE state = 0 LIMIT 1')).toHaveLength(1);
    stop.abort();
    await Promise.all(relays);
  });
});

describe('a message that changed between the look and the write', () => {
  it('is left as it is: each statement names the state that it expects', async () => {
    await t.row({ next_attempt_at_utc: new Date(Date.now() + 60_000), retry_count: 2 });
    await t.row({ state: 2, processed_at_utc: new Date() });
    await t.row({ state: 1, locked_until_utc: new Date(Date.now() + 60_000) });
    const before = await t.rows('SELECT * FROM outbox_messages ORDER BY sequence');
    const buckets = Array.from({ length: 64 }, (_, bucket) => bucket);
    const lease = await t.outbox.lease({ destination: 'orders', limit: 64, leaseMs: 20_000, buckets });
    const ids = before.map(({ id }) => id);
    await t.pool.query(requeueOutbox(t.tables), ['orders', lease?.token, ids]);
    await t.pool.query(discardOutbox(t.tables), ['orders', lease?.token, ids.slice(1), 'x']);
    expect(await t.rows('SELECT * FROM outbox_messages ORDER BY sequence')).toEqual(before);
  });
});

describe('a command whose own lease ran out', () => {
  it('changes nothing', async () => {
    const failed = await t.row(failedColumns({ partition_key: 'k' }));
    await t.row({ partition_key: 'k', held: true });
    const buckets = Array.from({ length: 64 }, (_, bucket) => bucket);
    const lease = await t.outbox.lease({ destination: 'orders', limit: 64, leaseMs: 1, buckets });
    await new Promise((resolve) => setTimeout(resolve, 20));
    const { tables, pool } = t;
    const before = await t.rows('SELECT * FROM outbox_messages ORDER BY sequence');
    await pool.query(requeueOutbox(tables), ['orders', lease?.token, [failed]]);
    await pool.query(discardOutbox(tables), ['orders', lease?.token, [failed], 'x']);
    await pool.query(releaseFollowers(tables), ['orders', lease?.token, ['k']]);
    expect(await t.rows('SELECT * FROM outbox_messages ORDER BY sequence')).toEqual(before);
  });
});
