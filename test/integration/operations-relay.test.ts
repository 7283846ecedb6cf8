import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { Deadline } from '../../shared/delivery/deadline.ts';
import { silent } from '../../shared/delivery/telemetry.ts';
import { runRelay } from '../../shared/outbox/relay.ts';
import { relayDefaults } from '../../shared/outbox/relay-options.ts';
import type { Publisher } from '../../shared/publish/publisher.ts';
import { engine } from '../support/engine/engine.ts';
import { failedColumns, operatingOn } from '../support/engine/operations.ts';
import { not } from '../support/engine/values.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
beforeEach(() => db.clear('outbox', 'leases', 'lanes'));

const { ask, row } = operatingOn(db);

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
    store: db.instance().outbox,
    destinations: new Map([['orders', publisher(sent, options.ms) as Publisher]]),
    deadline: Deadline.in(25_000),
    signal: options.signal ?? new AbortController().signal,
    telemetry: silent,
    options: { ...relayDefaults, mode: options.signal ? 'continuous' : 'scheduled', pollMs: 50 },
  });
}

async function blockedKey(followers: number): Promise<{ head: string; rest: readonly string[] }> {
  const head = await row(failedColumns({ partition_key: 'k', held: true }));
  await db.insertMany('outbox', Array(followers).fill({ partition_key: 'k', held: true }));
  const rest = await db.rows('outbox', { id: not(head) }, { columns: ['id'] });
  return { head, rest: rest.map(({ id }) => String(id)) };
}

describe('a key that a person has opened again', () => {
  it('is published to its end, in order, though not all its followers are let go at once', async () => {
    const sent: string[] = [];
    const requeued = await blockedKey(500);
    await ask({ command: 'requeue', ids: [requeued.head] });
    await relay(sent);
    expect(sent).toEqual([requeued.head, ...requeued.rest]);
    await db.clear('outbox');
    const discarded = await blockedKey(500);
    await ask({ command: 'discard', ids: [discarded.head], reason: 'x', by: 'Ada' });
    sent.length = 0;
    await relay(sent);
    expect(sent).toEqual(discarded.rest);
  });
});

describe('a lane that relays work on without a pause', () => {
  it('still lets a person decide: relays give their buckets back every few seconds', async () => {
    await db.insertMany('outbox', Array(30_000).fill({}));
    const ids = await Promise.all([1, 2, 3].map(() => row(failedColumns())));
    const stop = new AbortController();
    const relays = [1, 2].map(() => relay([], { ms: 20, signal: stop.signal }));
    await new Promise((resolve) => setTimeout(resolve, 500));
    const { changed } = await ask({ command: 'requeue', ids, waitSeconds: 20 });
    expect(changed).toHaveLength(3);
    expect(await db.count('outbox', { state: 0 })).toBeGreaterThan(0);
    stop.abort();
    await Promise.all(relays);
  });
});
