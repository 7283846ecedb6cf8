import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect } from '../../../shared/store/postgres/connections.ts';
import { postgresInboxStore } from '../../../shared/store/postgres/inbox-store.ts';
import { claimUnkeyed } from '../../../shared/store/postgres/sql/inbox-claim.ts';
import { claimHeads, leaseKeys } from '../../../shared/store/postgres/sql/inbox-claim-keys.ts';
import { secondsToNextDue } from '../../../shared/store/postgres/sql/inbox-due.ts';
import { ingest } from '../../../shared/store/postgres/sql/inbox-ingest.ts';
import { lockKeys, refreshKeys } from '../../../shared/store/postgres/sql/inbox-keys.ts';
import {
  lockKeyToMark,
  markFailed,
  markKeyedProcessed,
  markProcessed,
  release,
} from '../../../shared/store/postgres/sql/inbox-settle.ts';
import { inboxRow } from '../../support/inbox-rows.ts';
import { createMigratedDatabase } from '../../support/migrated.ts';

const db = await createMigratedDatabase();
const names = db.tables;
const database = connect({ url: db.url });
const store = postgresInboxStore(database, names);
afterAll(async () => {
  await database.end();
  await db.drop();
});

/** Rows of a query, for looking at the tables. */
async function select(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  return (await db.pool.query(text, values)).rows;
}

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly Plan[];
}

/** Explains a statement by running it, and takes back what it did. */
async function explain(text: string, values: unknown[]): Promise<{ buffers: number; scanned: string[] }> {
  // What was taken back lies about in the pages, and would be counted with the next one's cost. Frozen, since a lock in
  // a page that is all frozen reads one page more: so every page is in the same state.
  await db.pool.query('VACUUM (FREEZE) inbox_messages, inbox_keys');
  const client = await db.pool.connect();
  try {
    await client.query('BEGIN');
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, values);
    const plan = rows[0]['QUERY PLAN'][0].Plan as Plan;
    return { buffers: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'], scanned: sequential(plan) };
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
}

function sequential(plan: Plan): string[] {
  const own = plan['Node Type'] === 'Seq Scan' ? [String(plan['Relation Name'])] : [];
  // Ten rows of small tables are read from end to end by any planner.
  return [...own.filter((name) => name !== 'inbox_lanes'), ...(plan.Plans ?? []).flatMap(sequential)];
}

/** What a claim of a type's due messages reads: the unkeyed, the keys' leases, the keys' heads. */
async function claimOf(type: string) {
  const unkeyed = await explain(claimUnkeyed(names), ['', type, 50, 8_000_000, 30_000, null, false]);
  const keyed = await explain(leaseKeys(names), ['', type, 50, 30_000]);
  const leased = await select(leaseKeys(names), ['', type, 50, 30_000]);
  const column = (name: string) => leased.map((row) => row[name]);
  const heads = await explain(claimHeads(names), [
    '',
    type,
    column('source'),
    column('partition_key'),
    column('token'),
    8_000_000,
    null,
    false,
    50,
  ]);
  await db.pool.query(
    `UPDATE inbox_keys SET lock_token = NULL, locked_until_utc = '-infinity' WHERE lock_token IS NOT NULL`,
  );
  return { unkeyed, keyed, heads };
}

const insert = `INSERT INTO inbox_messages (id, source, external_message_id, message_type, payload, created_at_utc, state,
  partition_key, next_attempt_at_utc, processed_at_utc, held, last_error)`;

beforeAll(async () => {
  // What is read is counted, so nobody else may tidy: an analysis that autovacuum happens to begin holds back what
  // the test's own VACUUM is to remove.
  await db.pool.query(
    `ALTER TABLE inbox_messages SET (autovacuum_enabled = false); ALTER TABLE inbox_keys SET (autovacuum_enabled = false)`,
  );
  await db.pool.query(
    `${insert} SELECT gen_random_uuid(), 'shop', 'history' || n, 'order.placed', '{}', now(), 2, CASE WHEN n % 2 = 0 THEN 'h' || n END, NULL, now(), false, NULL
     FROM generate_series(1, 200000) n`,
  );
  // Two types with the same due rows. One of them gets what is not due besides; the other shows what a claim costs in
  // the same tables without, since any type's rows make the indexes as deep as they are.
  for (const messageType of ['order.placed', 'order.twin']) {
    for (const keyed of [false, true]) {
      const due = Array.from({ length: 200 }, (_, n) =>
        inboxRow({
          messageType,
          externalMessageId: `${messageType} ${keyed} ${n}`,
          partitionKey: keyed ? `${messageType} ${n}` : null,
          payload: JSON.stringify('x'.repeat(400)),
        }),
      );
      await store.ingest(due);
    }
  }
  // A tiny table is simply read as a whole.
  await db.pool.query(
    `INSERT INTO inbox_keys (consumer, source, partition_key, head_sequence, head_type) SELECT '', 'shop', 'other' || n, n, 'other' FROM generate_series(1, 10000) n`,
  );
  await db.pool.query('VACUUM ANALYZE inbox_messages, inbox_keys, inbox_lanes');
}, 120_000);

test('claims are heap-only updates: no index is written', async () => {
  // A connection of its own: its counters start at nothing.
  const client = new pg.Client(db.url);
  await client.connect();
  try {
    await client.query('BEGIN');
    const unkeyedRows = await client.query(claimUnkeyed(names), [
      '',
      'order.placed',
      50,
      8_000_000,
      30_000,
      7,
      false,
    ]);
    const leased = await client.query(leaseKeys(names), ['', 'order.placed', 50, 30_000]);
    const column = (name: string) => leased.rows.map((row) => row[name]);
    const keyedRows = await client.query(claimHeads(names), [
      '',
      'order.placed',
      column('source'),
      column('partition_key'),
      column('token'),
      8_000_000,
      7,
      false,
      50,
    ]);
    expect([unkeyedRows.rows.length, keyedRows.rows.length]).toEqual([50, 50]);
    const { rows } = await client.query(
      `SELECT relname, n_tup_upd::int AS updates, n_tup_hot_upd::int AS heap_only FROM pg_stat_xact_user_tables
       WHERE relname IN ('inbox_messages', 'inbox_keys') ORDER BY relname`,
    );
    expect(rows).toEqual([
      { relname: 'inbox_keys', updates: 50, heap_only: 50 },
      { relname: 'inbox_messages', updates: 100, heap_only: 100 },
    ]);
  } finally {
    await client.end();
  }
});

describe('a claim’s cost does not depend on what is not due', () => {
  test('200,000 ended rows, 10,000 waiting keys, 100,000 delayed messages and a blocked key with 100,000 followers', async () => {
    await db.pool.query(
      `${insert} SELECT gen_random_uuid(), 'shop', 'delayed' || n, 'order.placed', '{}', now(), 0, NULL, now() + interval '1 h', NULL, false, NULL
       FROM generate_series(1, 100000) n;
       ${insert} SELECT gen_random_uuid(), 'shop', 'waiting' || n, 'order.placed', '{}', now(), 0, 'w' || n, now() + interval '1 h', NULL, false, 'no'
       FROM generate_series(1, 10000) n;
       ${insert} SELECT gen_random_uuid(), 'shop', 'blocked' || n, 'order.placed', '{}', now(), CASE WHEN n = 1 THEN 3 ELSE 0 END, 'b', NULL,
         CASE WHEN n = 1 THEN now() END, n = 1, CASE WHEN n = 1 THEN 'no' END
       FROM generate_series(1, 100000) n;
       INSERT INTO inbox_keys (consumer, source, partition_key, head_sequence, head_type, next_attempt_at_utc, blocked)
       SELECT '', 'shop', partition_key, min(sequence), 'order.placed', max(next_attempt_at_utc), partition_key = 'b'
       FROM inbox_messages WHERE partition_key LIKE 'w%' OR partition_key = 'b' GROUP BY partition_key`,
    );
    // Planned with the statistics of before on purpose: a burst comes quicker than autovacuum.
    for (const round of ['at once', 'analysed']) {
      const [twin, mixed] = [await claimOf('order.twin'), await claimOf('order.placed')];
      for (const part of ['unkeyed', 'keyed', 'heads'] as const) {
        console.info(`${part} ${round}: ${twin[part].buffers} buffers without, ${mixed[part].buffers} with`);
        expect(mixed[part].scanned, `${part} ${round}`).toEqual([]);
        expect(mixed[part].buffers, `${part} ${round}`).toBeLessThanOrEqual(twin[part].buffers * 1.2);
      }
      await db.pool.query('VACUUM ANALYZE inbox_messages, inbox_keys');
    }
  }, 120_000);

  test('no statement reads a table from end to end', async () => {
    const row = (
      await select(
        `SELECT id, gen_random_uuid() AS token FROM inbox_messages WHERE partition_key = 'b' LIMIT 1`,
      )
    )[0];
    const { id, token } = row ?? {};
    const key = [[''], ['shop'], ['b']];
    const rows = Array.from({ length: 100 }, (_, n) => ({
      n,
      id: '',
      ...inboxRow(),
      partition_key: `k${n % 9}`,
    })).map(({ externalMessageId, messageType, maxRetries, ...rest }, n) => ({
      ...rest,
      id: `00000000-0000-0000-0000-${String(n).padStart(12, '0')}`,
      external_message_id: externalMessageId,
      message_type: messageType,
      max_retries: maxRetries,
    }));
    const statements: [string, string, unknown[]][] = [
      ['ingest', ingest(names), [JSON.stringify(rows)]],
      ['mark', markProcessed(names), [id, token]],
      ['lock to mark', lockKeyToMark(names), ['', 'shop', 'b', '5000']],
      ['mark keyed', markKeyedProcessed(names), [id, token]],
      ['fail', markFailed(names), [[id], [token], ['no'], [null], true]],
      ['release', release(names), [[id], [token]]],
      ['lock', lockKeys(names), key],
      ['refresh', refreshKeys(names), [...key, [null]]],
      ['next due', secondsToNextDue(names), ['', 'order.placed']],
    ];
    for (const [what, text, values] of statements) {
      const { scanned, buffers } = await explain(text, values);
      expect(scanned, what).toEqual([]);
      expect(buffers, what).toBeLessThan(what === 'ingest' ? 20_000 : 2_000);
    }
  });
});
