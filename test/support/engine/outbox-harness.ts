import type {
  OutboxHarness,
  OutboxRowView,
  ProducerTransaction,
} from '../../../shared/testing/outbox/harness.ts';
import type { EngineDatabase, EngineInstance } from './test-engine.ts';
import { secondsFromNow } from './values.ts';

/**
 * Makes harnesses of a database, each over empty tables: for the contract suite and for tests of our own. The second store has
 * connections of its own, as another function instance has them.
 */
export function outboxHarnessOn(db: EngineDatabase): () => Promise<OutboxHarness> {
  let second: EngineInstance | undefined;
  return async () => {
    second ??= db.instance({ max: 8 });
    await db.clear('outbox', 'archive', 'leases', 'lanes');
    const open = new Set<() => Promise<void>>();
    return {
      store: db.outbox,
      another: second.outbox,
      inspect: (id) => inspect(db, id),
      archived: async (id) => (await db.count('archive', { id })) > 0,
      begin: () => begin(db, open),
      async insertForeignRow(row) {
        await db.insert('outbox', {
          id: row.id,
          destination: row.destination,
          message_type: row.messageType,
          payload: row.payload,
          headers: row.headersJson ?? null,
          created_at_utc: secondsFromNow(row.createdInSeconds ?? 0),
          retry_count: row.retryCount ?? 0,
          max_retries: row.maxRetries,
          state: row.state,
          locked_until_utc: row.lockedForMs === undefined ? null : secondsFromNow(row.lockedForMs / 1_000),
        });
      },
      async discard(id) {
        await db.update('outbox', { state: 4, held: false, processed_at_utc: secondsFromNow(0) }, { id });
      },
      async requeue(id) {
        const due = {
          state: 0,
          held: false,
          retry_count: 0,
          next_attempt_at_utc: null,
          processed_at_utc: null,
        };
        await db.update('outbox', due, { id });
      },
      async pause(destination) {
        const pause = { paused_at_utc: secondsFromNow(0), paused_by: 'ann' };
        const paused = await db.update('lanes', pause, { destination });
        if (paused === 0) await db.insert('lanes', { destination, ...pause });
      },
      async resume(destination) {
        await db.update('lanes', { paused_at_utc: null, paused_by: null }, { destination });
      },
      async close() {
        for (const rollback of open) await rollback();
      },
    };
  };
}

/** A producer's transaction, rolled back with the harness where the test leaves it open. */
async function begin(db: EngineDatabase, open: Set<() => Promise<void>>): Promise<ProducerTransaction> {
  const transaction = await db.begin();
  const rollback = async (): Promise<void> => {
    if (open.delete(rollback)) await transaction.rollback();
  };
  open.add(rollback);
  return {
    add: (rows) => transaction.addRows(rows),
    async commit() {
      open.delete(rollback);
      await transaction.commit();
    },
    rollback,
  };
}

async function inspect(db: EngineDatabase, id: string): Promise<OutboxRowView | undefined> {
  const [row] = await db.rows('outbox', { id });
  if (row === undefined) return undefined;
  const [waits = null] = await db.secondsLeft('outbox', 'next_attempt_at_utc', { id });
  const [version] = await db.sql(
    {
      postgres: `SELECT xmin || '/' || ctid AS version FROM ${db.tables.outbox} WHERE id = $1`,
      // There is no version of a row here: what any of our writes would change stands for it.
      sqlserver: `SELECT CONCAT([State], N'/', [Held], N'/', [RetryCount], N'/', [NextAttemptAtUtc], N'/', [ProcessedAtUtc], N'/', [LockedUntilUtc]) AS [version]
        FROM ${db.tables.outbox} WHERE [Id] = @p1`,
    },
    [id],
  );
  return {
    state: Number(row.state),
    held: row.held === true,
    retryCount: Number(row.retry_count),
    waitsSeconds: waits,
    lastError: typeof row.last_error === 'string' ? row.last_error : null,
    ended: row.processed_at_utc !== null,
    version: String(version?.['version']),
  };
}

/**
 * Partition keys by the bucket that the database gives them; `count` keys that begin with `prefix`. They are written for that, into
 * a lane of their own, and removed again.
 */
export async function keysByBucket(
  db: EngineDatabase,
  prefix: string,
  count: number,
): Promise<ReadonlyMap<number, readonly string[]>> {
  const destination = 'keys by bucket';
  const keys = Array.from({ length: count }, (_, n) => `${prefix}${n}`);
  await db.insertMany(
    'outbox',
    keys.map((partition_key) => ({ destination, partition_key, state: 2 })),
  );
  const found = new Map<number, string[]>();
  for (const row of await db.rows('outbox', { destination }, { columns: ['bucket', 'partition_key'] })) {
    const bucket = Number(row.bucket);
    found.set(bucket, [...(found.get(bucket) ?? []), String(row.partition_key)]);
  }
  await db.remove('outbox', { destination });
  return found;
}
